// ResNet (He et al., torchvision's v1.5) and VGG-16.
#include <array>

#include <fmt/format.h>

#include "models/nn/builder.h"
#include "models/nn/families.h"

namespace railyard::models {
namespace {

constexpr std::int64_t kClasses = 1000;
constexpr Window kOneByOne{1, 1, 0};

struct Block {
  std::string name;
  std::int64_t in = 0;
  std::int64_t width = 0;
  std::int64_t out = 0;
  std::int64_t stride = 1;
  bool downsample = false;
};

struct ResNetShape {
  bool bottleneck = false;
  std::array<int, 4> blocks{};
};

std::vector<Block> resnet_blocks(const ResNetShape& shape) {
  constexpr std::array<std::int64_t, 4> kWidths{64, 128, 256, 512};
  std::vector<Block> blocks;
  std::int64_t channels = 64;
  for (std::size_t stage = 0; stage < kWidths.size(); ++stage) {
    const std::int64_t out = kWidths[stage] * (shape.bottleneck ? 4 : 1);
    for (int i = 0; i < shape.blocks[stage]; ++i) {
      const std::int64_t stride = i == 0 && stage > 0 ? 2 : 1;
      blocks.push_back({.name = fmt::format("layer{}.{}", stage + 1, i),
                        .in = channels,
                        .width = kWidths[stage],
                        .out = out,
                        .stride = stride,
                        .downsample = stride != 1 || channels != out});
      channels = out;
    }
  }
  return blocks;
}

struct Step {  // one convolution with its batch norm
  std::int64_t in = 0;
  std::int64_t out = 0;
  Window window;
};

std::vector<Step> block_steps(const Block& block, bool bottleneck) {
  const Window strided{3, block.stride, 1};
  if (bottleneck)
    return {{block.in, block.width, kOneByOne},
            {block.width, block.width, strided},
            {block.width, block.out, kOneByOne}};
  return {{block.in, block.width, strided}, {block.width, block.out, {3, 1, 1}}};
}

void register_block(NetworkBuilder& net, const Block& block, const std::vector<Step>& steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    net.conv(fmt::format("{}.conv{}", block.name, i + 1), steps[i].in, steps[i].out,
             steps[i].window.size);
    net.batch_norm(fmt::format("{}.bn{}", block.name, i + 1), steps[i].out);
  }
  if (!block.downsample) return;
  net.conv(block.name + ".downsample.0", block.in, block.out, 1);
  net.batch_norm(block.name + ".downsample.1", block.out);
}

Image run_block(NetworkBuilder& net, const Block& block, const std::vector<Step>& steps,
                const Image& in) {
  Image image = in;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    image = net.run_conv(fmt::format("{}.conv{}", block.name, i + 1), image, steps[i].window);
    net.run_batch_norm(fmt::format("{}.bn{}", block.name, i + 1), image.elements());
    if (i + 1 < steps.size())
      net.run_elementwise(fmt::format("{}.relu{}", block.name, i + 1), image.elements(),
                          image.elements());
  }
  if (block.downsample) {
    net.run_conv(block.name + ".downsample.0", in, {1, block.stride, 0});
    net.run_batch_norm(block.name + ".downsample.1", image.elements());
  }
  net.run_add(block.name + ".add", image.elements());
  net.run_elementwise(block.name + ".relu", image.elements(), image.elements());
  return image;
}

NetworkSpec build_resnet(const BuildContext& context, const ResNetShape& shape) {
  NetworkBuilder net(context.name, context.dtype);
  const std::vector<Block> blocks = resnet_blocks(shape);
  net.conv("conv1", 3, 64, 7);
  net.batch_norm("bn1", 64);
  for (const Block& block : blocks)
    register_block(net, block, block_steps(block, shape.bottleneck));
  net.linear("fc", blocks.back().out, kClasses);

  Image image = net.run_conv("conv1", {3, context.size, context.size}, {7, 2, 3});
  net.run_batch_norm("bn1", image.elements());
  net.run_elementwise("relu", image.elements(), image.elements());
  image = net.run_pool("maxpool", image, {3, 2, 1});
  for (const Block& block : blocks)
    image = run_block(net, block, block_steps(block, shape.bottleneck), image);
  net.run_pool("avgpool", image, {image.height, 1, 0});
  net.run_linear("fc", 1);
  net.run_elementwise("loss", kClasses, kClasses);
  return std::move(net).spec();
}

}  // namespace

NetworkSpec build_resnet18(const BuildContext& context) {
  return build_resnet(context, {.bottleneck = false, .blocks = {2, 2, 2, 2}});
}

NetworkSpec build_resnet50(const BuildContext& context) {
  return build_resnet(context, {.bottleneck = true, .blocks = {3, 4, 6, 3}});
}

NetworkSpec build_vgg16(const BuildContext& context) {
  constexpr std::int64_t kPool = 0;
  constexpr std::array<std::int64_t, 18> kPlan{64,  64,    kPool, 128,   128, kPool,
                                               256, 256,   256,   kPool, 512, 512,
                                               512, kPool, 512,   512,   512, kPool};
  constexpr std::int64_t kHidden = 4096;
  constexpr std::int64_t kPooled = 7;  // the adaptive pooling's output side
  NetworkBuilder net(context.name, context.dtype);
  Image image{3, context.size, context.size};
  int index = 0;  // in nn.Sequential, where ReLU and pooling count too
  for (const std::int64_t width : kPlan) {
    const std::string name = fmt::format("features.{}", index);
    if (width == kPool) {
      image = net.run_pool(name, image, {2, 2, 0});
      index += 1;
      continue;
    }
    net.conv(name, image.channels, width, 3, true);
    image = net.run_conv(name, image, {3, 1, 1});
    net.run_elementwise(fmt::format("features.{}", index + 1), image.elements(), image.elements());
    index += 2;
  }
  net.linear("classifier.0", image.channels * kPooled * kPooled, kHidden);
  net.linear("classifier.3", kHidden, kHidden);
  net.linear("classifier.6", kHidden, kClasses);
  net.run_linear("classifier.0", 1);
  net.run_elementwise("classifier.1", kHidden, kHidden);
  net.run_linear("classifier.3", 1);
  net.run_elementwise("classifier.4", kHidden, kHidden);
  net.run_linear("classifier.6", 1);
  net.run_elementwise("loss", kClasses, kClasses);
  return std::move(net).spec();
}

}  // namespace railyard::models
