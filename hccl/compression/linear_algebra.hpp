#pragma once

#include <cstddef>
#include <span>

/// Products and orthogonalisation of the small matrices of PowerSGD, in fp32 or fp64. Sums are in fp64 and rounded
/// once; matrices are row-major; one thread computes a product, so its bits do not depend on workers. P has rows × rank
/// elements, Q columns × rank.
namespace hcclsim::hccl {

struct MatrixShape {
  std::size_t rows = 0;
  std::size_t columns = 0;
};

/// p = m·q.
template <typename Real>
void project(MatrixShape shape, std::span<const Real> m, std::span<const Real> q, std::span<Real> p);
/// q = mᵀ·p.
template <typename Real>
void project_back(MatrixShape shape, std::span<const Real> m, std::span<const Real> p, std::span<Real> q);
/// m = p·qᵀ.
template <typename Real>
void reconstruct(MatrixShape shape, std::span<const Real> p, std::span<const Real> q, std::span<Real> m);

/// Modified Gram-Schmidt on the columns of a matrix of shape.rows × shape.columns: each is divided by its norm plus
/// epsilon and its part is taken from the later ones. A column of zeros becomes NaN without epsilon (P11.8).
template <typename Real>
void gram_schmidt(MatrixShape shape, std::span<Real> matrix, Real epsilon);
/// Replaces the matrix, which has no more columns than rows, by the Q of its QR decomposition by Householder
/// reflections, with LAPACK's signs.
template <typename Real>
void orthogonalise_by_qr(MatrixShape shape, std::span<Real> matrix);

}  // namespace hcclsim::hccl
