//! Least squares within ranges, and the few operations on small symmetric matrices that a fit needs.

use super::ensemble::Random;
use super::response::Row;
use super::values::Value;

/// Number of passes over all values in a bounded minimization.
const PASSES: usize = 400;

/// Returns the sums of products of the slopes of `rows`, with each value in units of its range.
pub(super) fn gram(rows: &[Row], active: &[Value]) -> Vec<Vec<f64>> {
    let ranges: Vec<f64> = active.iter().map(|value| value.high - value.low).collect();
    let mut gram = vec![vec![0.0; active.len()]; active.len()];
    for row in rows {
        for (i, line) in gram.iter_mut().enumerate() {
            for (j, entry) in line.iter_mut().enumerate() {
                *entry += row.slopes[i] * ranges[i] * row.slopes[j] * ranges[j];
            }
        }
    }
    gram
}

/// Returns the values, each within its range, with the least sum of squares of what their moves leave of the
/// differences `lateness`. Value `fixed` remains.
pub(super) fn bounded_least_squares(
    rows: &[Row],
    active: &[Value],
    fixed: usize,
    lateness: &dyn Fn(&Row) -> f64,
) -> Vec<f64> {
    let quadratic = gram(rows, active);
    let ranges: Vec<f64> = active.iter().map(|value| value.high - value.low).collect();
    let mut linear = vec![0.0; active.len()];
    for row in rows {
        let late = lateness(row);
        for (index, entry) in linear.iter_mut().enumerate() {
            *entry += row.slopes[index] * ranges[index] * late;
        }
    }
    let bounds: Vec<(f64, f64)> = active
        .iter()
        .zip(&ranges)
        .map(|(value, range)| ((value.low - value.now) / range, (value.high - value.now) / range))
        .collect();
    let free: Vec<usize> = (0..active.len()).filter(|&index| index != fixed).collect();
    let mut moved = vec![0.0; active.len()];
    minimize(&quadratic, &linear, &bounds, &free, &mut moved);
    active.iter().zip(&ranges).zip(&moved).map(|((value, range), by)| value.now + by * range).collect()
}

/// Minimizes `½ x·Qx − b·x` over the coordinates `free` of `at`, each within its bounds.
pub(super) fn minimize(q: &[Vec<f64>], b: &[f64], bounds: &[(f64, f64)], free: &[usize], at: &mut [f64]) {
    for _ in 0..PASSES {
        for &index in free {
            if q[index][index] <= 0.0 {
                continue;
            }
            let product: f64 = q[index].iter().zip(at.iter()).map(|(entry, at)| entry * at).sum();
            let (low, high) = bounds[index];
            at[index] = (at[index] + (b[index] - product) / q[index][index]).clamp(low, high);
        }
    }
}

/// Returns the lower triangular matrix L with LLᵀ = `matrix`, which is positive definite.
fn cholesky(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let size = matrix.len();
    let mut lower = vec![vec![0.0; size]; size];
    for i in 0..size {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
            let left = matrix[i][j] - sum;
            lower[i][j] = if i == j { left.max(1e-12 * matrix[i][i]).sqrt() } else { left / lower[j][j] };
        }
    }
    lower
}

/// Draws a point of the normal density with mean 0 and the precision `matrix`.
pub(super) fn draw(matrix: &[Vec<f64>], random: &mut Random) -> Vec<f64> {
    let lower = cholesky(matrix);
    let size = matrix.len();
    let mut point: Vec<f64> = (0..size).map(|_| random.normal()).collect();
    for i in (0..size).rev() {
        let sum: f64 = (i + 1..size).map(|k| lower[k][i] * point[k]).sum();
        point[i] = (point[i] - sum) / lower[i][i];
    }
    point
}

/// Returns the inverse of `matrix`, which is positive definite.
pub(super) fn inverse(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let lower = cholesky(matrix);
    let size = matrix.len();
    let mut inverse = vec![vec![0.0; size]; size];
    for column in 0..size {
        let mut x = vec![0.0; size];
        for i in 0..size {
            let sum: f64 = (0..i).map(|k| lower[i][k] * x[k]).sum();
            x[i] = (f64::from(u8::from(i == column)) - sum) / lower[i][i];
        }
        for i in (0..size).rev() {
            let sum: f64 = (i + 1..size).map(|k| lower[k][i] * x[k]).sum();
            x[i] = (x[i] - sum) / lower[i][i];
        }
        for (row, entry) in inverse.iter_mut().zip(x) {
            row[column] = entry;
        }
    }
    inverse
}

/// Returns the diagonal of the inverse of `matrix`, which is positive definite.
pub(super) fn inverse_diagonal(matrix: &[Vec<f64>]) -> Vec<f64> {
    inverse(matrix).iter().enumerate().map(|(index, row)| row[index]).collect()
}
