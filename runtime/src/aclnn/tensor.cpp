#include "aclnn/tensor.h"

#include <fmt/format.h>

#include <algorithm>

#include "aclnn/aclnn_base.h"
#include "vatlas/runtime/handles.h"

namespace vatlas::runtime {

bool Tensor::contiguous() const {
  if (std::find(view.begin(), view.end(), 0) != view.end()) return true;  // has no elements
  std::int64_t step = 1;
  for (std::size_t i = view.size(); i-- > 0;) {
    if (view[i] != 1 && strides[i] != step) return false;
    step *= view[i];
  }
  return true;
}

std::uint64_t Tensor::elements() const {
  std::uint64_t count = 1;
  for (const std::int64_t dim : view) count *= static_cast<std::uint64_t>(dim);
  return count;
}

TensorTable& tensorTable() {
  static auto* table = new TensorTable;  // leaked: used while the process exits
  return *table;
}

std::shared_ptr<Tensor> findTensor(const aclTensor* tensor) {
  TensorTable& table = tensorTable();
  const std::lock_guard lock(table.mutex);
  return table.tensors.find(reinterpret_cast<std::uint64_t>(tensor));
}

}  // namespace vatlas::runtime

using namespace vatlas::runtime;

namespace {

int problem(int code, const char* function, const char* what) {
  return fail(code, {"EZ1001", "Parameter error", fmt::format("{}: {}", function, what), {}, {}});
}

template <typename Body>
int withTensor(const char* function, const aclTensor* tensor, const void* out, Body&& body) {
  return guarded(function, [&] {
    if (tensor == nullptr || out == nullptr)
      return problem(ACLNN_ERR_PARAM_NULLPTR, function, "an argument is null");
    const std::shared_ptr<Tensor> found = findTensor(tensor);
    if (!found) return problem(ACLNN_ERR_PARAM_INVALID, function, "the tensor was destroyed, or is none");
    body(*found);
    return ACLNN_SUCCESS;
  });
}

int giveList(const char* function, const aclTensor* tensor, std::vector<std::int64_t> Tensor::*list,
             int64_t** values, uint64_t* count) {
  if (count == nullptr) return problem(ACLNN_ERR_PARAM_NULLPTR, function, "an argument is null");
  return withTensor(function, tensor, values, [&](const Tensor& t) {
    const std::vector<std::int64_t>& source = t.*list;
    auto* copy = new int64_t[source.size()];
    std::copy(source.begin(), source.end(), copy);
    *values = copy;
    *count = source.size();
  });
}

constexpr std::uint64_t kMostDims = 64;

}  // namespace

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                           const int64_t* stride, int64_t offset, aclFormat format,
                           const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData) {
  aclTensor* handle = nullptr;
  guarded("aclCreateTensor", [&] {
    if ((viewDims == nullptr && viewDimsNum > 0) || (storageDims == nullptr && storageDimsNum > 0)) {
      return problem(ACLNN_ERR_PARAM_NULLPTR, "aclCreateTensor", "a list of dimensions is null");
    }
    if (viewDimsNum > kMostDims || storageDimsNum > kMostDims) {
      return problem(ACLNN_ERR_PARAM_INVALID, "aclCreateTensor", "a tensor has at most 64 dimensions");
    }
    auto tensor = std::make_shared<Tensor>();
    tensor->view.assign(viewDims, viewDims + viewDimsNum);
    tensor->storage.assign(storageDims, storageDims + storageDimsNum);
    if (std::any_of(tensor->view.begin(), tensor->view.end(), [](std::int64_t d) { return d < 0; })) {
      return problem(ACLNN_ERR_PARAM_INVALID, "aclCreateTensor", "a dimension is negative");
    }
    if (stride != nullptr) {
      tensor->strides.assign(stride, stride + viewDimsNum);
    } else {
      tensor->strides.resize(viewDimsNum);
      std::int64_t step = 1;
      for (std::size_t i = viewDimsNum; i-- > 0;) {
        tensor->strides[i] = step;
        if (__builtin_mul_overflow(step, std::max<std::int64_t>(tensor->view[i], 1), &step)) {
          return problem(ACLNN_ERR_PARAM_INVALID, "aclCreateTensor",
                         "the tensor has more than 2^63 elements");
        }
      }
    }
    tensor->offset = offset;
    tensor->type = dataType;
    tensor->format = format;
    tensor->data = tensorData;
    TensorTable& table = tensorTable();
    const std::lock_guard lock(table.mutex);
    handle = reinterpret_cast<aclTensor*>(table.tensors.add(std::move(tensor)));
    return ACLNN_SUCCESS;
  });
  return handle;
}

aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  if (tensor == nullptr) return ACLNN_SUCCESS;
  TensorTable& table = tensorTable();
  const std::lock_guard lock(table.mutex);
  if (table.tensors.remove(reinterpret_cast<std::uint64_t>(tensor))) return ACLNN_SUCCESS;
  return problem(ACLNN_ERR_PARAM_INVALID, "aclDestroyTensor", "the tensor was destroyed before, or is none");
}

aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum) {
  return giveList("aclGetViewShape", tensor, &Tensor::view, viewDims, viewDimsNum);
}
aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims, uint64_t* storageDimsNum) {
  return giveList("aclGetStorageShape", tensor, &Tensor::storage, storageDims, storageDimsNum);
}
aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue, uint64_t* stridesNum) {
  return giveList("aclGetViewStrides", tensor, &Tensor::strides, stridesValue, stridesNum);
}
aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
  return withTensor("aclGetViewOffset", tensor, offset, [&](const Tensor& t) { *offset = t.offset; });
}
aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  return withTensor("aclGetFormat", tensor, format, [&](const Tensor& t) { *format = t.format; });
}
aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
  return withTensor("aclGetDataType", tensor, dataType, [&](const Tensor& t) { *dataType = t.type; });
}
aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr) {
  return withTensor("aclGetRawTensorAddr", tensor, addr, [&](const Tensor& t) { *addr = t.data; });
}
aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) {
  return withTensor("aclSetRawTensorAddr", tensor, tensor, [&](Tensor& t) { t.data = addr; });
}
aclnnStatus aclnnInit(const char*) {
  return ACLNN_SUCCESS;
}
aclnnStatus aclnnFinalize(void) {
  return ACLNN_SUCCESS;
}
