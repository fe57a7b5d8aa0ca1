#include "tools/cli/app.h"

int main(int argc, char** argv) { return railyard::cli::run_app(argc, argv); }
