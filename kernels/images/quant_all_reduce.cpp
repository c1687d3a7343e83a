#include "quant/quant_image.h"

extern "C" __attribute__((visibility("default"))) const VatlasImage* vatlas_image() {
  return vatlas::kernels::quantImage<vatlas::kernels::QuantOperator::AllReduce>();
}
