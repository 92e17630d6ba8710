#include "hccl/compression/linear_algebra.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

namespace hcclsim::hccl {
template <typename Real>
void project(MatrixShape shape, std::span<const Real> m, std::span<const Real> q, std::span<Real> p) {
  constexpr std::size_t lanes = 8;  // sums that do not wait for each other
  const std::size_t rank = q.size() / shape.columns;
  std::vector<Real> column(shape.columns);
  for (std::size_t k = 0; k < rank; ++k) {
    for (std::size_t j = 0; j < shape.columns; ++j) column[j] = q[j * rank + k];
    for (std::size_t i = 0; i < shape.rows; ++i) {
      const Real* const row = m.data() + i * shape.columns;
      std::array<double, lanes> sums{};
      std::size_t j = 0;
      for (; j + lanes <= shape.columns; j += lanes) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
          sums[lane] += static_cast<double>(row[j + lane]) * static_cast<double>(column[j + lane]);
        }
      }
      for (; j < shape.columns; ++j) sums[0] += static_cast<double>(row[j]) * static_cast<double>(column[j]);
      p[i * rank + k] = static_cast<Real>(std::accumulate(sums.begin(), sums.end(), 0.0));
    }
  }
}

template <typename Real>
void project_back(MatrixShape shape, std::span<const Real> m, std::span<const Real> p, std::span<Real> q) {
  const std::size_t rank = q.size() / shape.columns;
  std::vector<double> sums(shape.columns);
  for (std::size_t k = 0; k < rank; ++k) {
    std::ranges::fill(sums, 0.0);
    for (std::size_t i = 0; i < shape.rows; ++i) {
      const Real* const row = m.data() + i * shape.columns;
      const double factor = p[i * rank + k];
      for (std::size_t j = 0; j < shape.columns; ++j) sums[j] += factor * static_cast<double>(row[j]);
    }
    for (std::size_t j = 0; j < shape.columns; ++j) q[j * rank + k] = static_cast<Real>(sums[j]);
  }
}

template <typename Real>
void reconstruct(MatrixShape shape, std::span<const Real> p, std::span<const Real> q, std::span<Real> m) {
  const std::size_t rank = q.size() / shape.columns;
  std::vector<double> sums(shape.columns);
  std::vector<double> column(q.begin(), q.end());  // the columns of Q, one behind the other
  for (std::size_t j = 0; j < shape.columns; ++j) {
    for (std::size_t k = 0; k < rank; ++k) column[k * shape.columns + j] = q[j * rank + k];
  }
  for (std::size_t i = 0; i < shape.rows; ++i) {
    std::ranges::fill(sums, 0.0);
    for (std::size_t k = 0; k < rank; ++k) {
      const double factor = p[i * rank + k];
      const double* const of_q = column.data() + k * shape.columns;
      for (std::size_t j = 0; j < shape.columns; ++j) sums[j] += factor * of_q[j];
    }
    Real* const row = m.data() + i * shape.columns;
    for (std::size_t j = 0; j < shape.columns; ++j) row[j] = static_cast<Real>(sums[j]);
  }
}

template <typename Real>
void gram_schmidt(MatrixShape shape, std::span<Real> matrix, Real epsilon) {
  const std::size_t rows = shape.rows;
  const std::size_t columns = shape.columns;
  const auto product = [&](std::size_t one, std::size_t other) {
    double sum = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      sum += static_cast<double>(matrix[row * columns + one]) * static_cast<double>(matrix[row * columns + other]);
    }
    return sum;
  };
  for (std::size_t column = 0; column < columns; ++column) {
    const Real norm = static_cast<Real>(std::sqrt(product(column, column))) + epsilon;
    for (std::size_t row = 0; row < rows; ++row) matrix[row * columns + column] /= norm;
    for (std::size_t later = column + 1; later < columns; ++later) {
      const auto share = static_cast<Real>(product(column, later));
      for (std::size_t row = 0; row < rows; ++row) {
        matrix[row * columns + later] -= share * matrix[row * columns + column];
      }
    }
  }
}

template <typename Real>
void orthogonalise_by_qr(MatrixShape shape, std::span<Real> matrix) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic>;
  Matrix values(shape.rows, shape.columns);
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    values(static_cast<Eigen::Index>(i / shape.columns), static_cast<Eigen::Index>(i % shape.columns)) = matrix[i];
  }
  const Eigen::HouseholderQR<Matrix> factors(values);
  const Matrix orthonormal = factors.householderQ() * Matrix::Identity(values.rows(), values.cols());
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    matrix[i] = static_cast<Real>(
        orthonormal(static_cast<Eigen::Index>(i / shape.columns), static_cast<Eigen::Index>(i % shape.columns)));
  }
}

template void project(MatrixShape, std::span<const float>, std::span<const float>, std::span<float>);
template void project(MatrixShape, std::span<const double>, std::span<const double>, std::span<double>);
template void project_back(MatrixShape, std::span<const float>, std::span<const float>, std::span<float>);
template void project_back(MatrixShape, std::span<const double>, std::span<const double>, std::span<double>);
template void reconstruct(MatrixShape, std::span<const float>, std::span<const float>, std::span<float>);
template void reconstruct(MatrixShape, std::span<const double>, std::span<const double>, std::span<double>);
template void gram_schmidt(MatrixShape, std::span<float>, float);
template void gram_schmidt(MatrixShape, std::span<double>, double);
template void orthogonalise_by_qr(MatrixShape, std::span<float>);
template void orthogonalise_by_qr(MatrixShape, std::span<double>);

}  // namespace hcclsim::hccl
