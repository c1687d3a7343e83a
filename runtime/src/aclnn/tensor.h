// Tensors as the operators see them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "aclnn/acl_meta.h"
#include "vatlas/runtime/handle_ids.h"

namespace vatlas::runtime {

struct Tensor {
  std::vector<std::int64_t> view;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> storage;
  std::int64_t offset = 0;  // elements
  aclDataType type = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_UNDEFINED;
  void* data = nullptr;

  bool contiguous() const;
  std::uint64_t elements() const;
};

struct TensorTable {
  std::mutex mutex;
  HandleTable<Tensor> tensors{HandleKind::Tensor};
};
TensorTable& tensorTable();

// Null for a handle that is none.
std::shared_ptr<Tensor> findTensor(const aclTensor* tensor);

}  // namespace vatlas::runtime
