// Builds a NetworkSpec the way a framework's module does: modules are REGISTERED in one order
// (which fixes the parameter order) and RUN in another (which fixes the gradients' arrival).
//
//   NetworkBuilder net("toy", Dtype::fp32);
//   net.linear("fc", 512, 10);      // registers fc.weight (10, 512) and fc.bias
//   net.run_linear("fc", 1);        // one row per sample
//   auto toy = validate(std::move(net).spec());
//
// All sizes are per sample. The first layer run and every embedding have no data gradient. Running
// a name that was not registered is a bug of ours and fails a check.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "models/nn/network.h"

namespace railyard::models {

struct Image {  // of one sample
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  [[nodiscard]] std::int64_t elements() const { return channels * height * width; }
};

struct Window {  // of a convolution or a pooling, square
  std::int64_t size = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};

struct AttentionShape {
  std::int64_t tokens = 0;     // queries per sample
  std::int64_t width = 0;      // query heads * head size
  std::int64_t key_width = 0;  // key heads * head size
  bool half = false;           // count only the causal half of the s*s products
};

class NetworkBuilder {
 public:
  NetworkBuilder(std::string name, Dtype dtype);

  // Registration.
  void parameter(const std::string& name, std::vector<std::int64_t> shape, bool sparse = false);
  void linear(const std::string& name, std::int64_t in, std::int64_t out, bool bias = true);
  void conv(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t kernel,
            bool bias = false);
  void layer_norm(const std::string& name, std::int64_t width);
  void rms_norm(const std::string& name, std::int64_t width);
  void batch_norm(const std::string& name, std::int64_t channels);
  void embedding(const std::string& name, std::int64_t rows, std::int64_t width,
                 bool sparse = false);

  // Execution.
  void run_linear(const std::string& name, std::int64_t rows);
  // A Linear without bias whose weight is registered as `weight` (a tied projection).
  void run_tied(const std::string& name, const std::string& weight, std::int64_t rows);
  Image run_conv(const std::string& name, const Image& in, const Window& window);
  void run_norm(const std::string& name, std::int64_t elements);        // LN, RMS
  void run_batch_norm(const std::string& name, std::int64_t elements);  // BN
  void run_embedding(const std::string& name, std::int64_t lookups);
  void run_attention(const std::string& name, const AttentionShape& shape);
  void run_elementwise(const std::string& name, std::int64_t in, std::int64_t out);
  void run_add(const std::string& name, std::int64_t elements);  // residual
  Image run_pool(const std::string& name, const Image& in, const Window& window);
  void run(LayerSpec layer);  // anything else

  [[nodiscard]] const std::vector<std::int64_t>& shape(const std::string& parameter) const;
  [[nodiscard]] NetworkSpec spec() &&;

 private:
  // weight, and bias where registered
  [[nodiscard]] std::vector<std::string> affine(const std::string& module) const;
  [[nodiscard]] std::int64_t elements(const std::vector<std::string>& parameters) const;
  void run_gemm(const std::string& name, std::vector<std::string> parameters, std::int64_t rows);

  NetworkSpec spec_;
  Dtype dtype_;
  std::unordered_map<std::string, std::size_t> index_;
};

}  // namespace railyard::models
