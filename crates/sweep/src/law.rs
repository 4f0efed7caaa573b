//! The Universal Scalability Law: N. J. Gunther, *Guerrilla Capacity Planning*, 2007.
//!
//! X(N) = λN / (1 + σ(N − 1) + κN(N − 1)): λ is the rate of one I/O at a time, σ the share of serialised work, κ the
//! cost of each pair. With σ = κ = 0, rates rise with the depth for ever; with κ = 0 they approach λ/σ; otherwise they
//! fall beyond a peak.

/// A law that was fitted to rates over depths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// λ: I/Os per second with one in flight.
    pub lambda: f64,
    /// σ: contention.
    pub sigma: f64,
    /// κ: coherency.
    pub kappa: f64,
    /// R²: the share of the variance of the rates that it explains.
    pub fit: f64,
}

impl Law {
    /// The rate at a depth.
    pub fn rate(&self, depth: f64) -> f64 {
        let more = depth - 1.0;
        self.lambda * depth / (1.0 + self.sigma * more + self.kappa * depth * more)
    }

    /// The depth with the highest rate; `None` = according to the points, the rate rises for ever.
    pub fn peak(&self) -> Option<f64> {
        (self.kappa > 0.0).then(|| ((1.0 - self.sigma).max(0.0) / self.kappa).sqrt().max(1.0))
    }
}

/// Fits the law to rates over depths, by least squares of the relative errors. `None` = there are fewer than three depths, or
/// rates that are not rates.
///
/// N/X is linear in 1/λ, σ/λ and κ/λ, so no iteration is needed: each row is weighted with X/N, so that its residual is
/// the relative error of the rate. If σ or κ would be negative, the nearest fit with zeros is used.
pub fn fit(points: &[(f64, f64)]) -> Option<Law> {
    let mut depths: Vec<f64> = points.iter().map(|(depth, _)| *depth).collect();
    depths.sort_by(f64::total_cmp);
    depths.dedup();
    let is_rate =
        |&(depth, rate): &(f64, f64)| depth >= 1.0 && rate > 0.0 && depth.is_finite() && rate.is_finite();
    if depths.len() < 3 || !points.iter().all(is_rate) {
        return None;
    }
    let solutions =
        [[true, true], [true, false], [false, true], [false, false]].map(|used| constrained(points, used));
    let best = solutions.into_iter().flatten().min_by(|(one, _), (other, _)| one.total_cmp(other));
    let [inverse, contention, coherency] = best?.1;
    let law =
        Law { lambda: 1.0 / inverse, sigma: contention / inverse, kappa: coherency / inverse, fit: 0.0 };
    let mean = points.iter().map(|(_, rate)| rate).sum::<f64>() / points.len() as f64;
    let total: f64 = points.iter().map(|(_, rate)| (rate - mean).powi(2)).sum();
    let left: f64 = points.iter().map(|(depth, rate)| (rate - law.rate(*depth)).powi(2)).sum();
    // Equal rates leave nothing to explain.
    let fit = if total > 0.0 { 1.0 - left / total } else { f64::from(left == 0.0) };
    Some(Law { fit, ..law })
}

/// The least-squares solution for 1/λ and the used ones of σ/λ and κ/λ, and the sum of the squares; `None` = not a
/// valid law.
fn constrained(points: &[(f64, f64)], used: [bool; 2]) -> Option<(f64, [f64; 3])> {
    let mut matrix = [[0.0; 4]; 3];
    let row = |depth: f64, rate: f64| {
        let weight = rate / depth;
        let part = |is_used: bool, value: f64| if is_used { value * weight } else { 0.0 };
        [weight, part(used[0], depth - 1.0), part(used[1], depth * (depth - 1.0))]
    };
    for &(depth, rate) in points {
        let row = row(depth, rate);
        for (line, factor) in matrix.iter_mut().zip(row) {
            for (cell, value) in line.iter_mut().zip(row.into_iter().chain([1.0])) {
                *cell += factor * value;
            }
        }
    }
    for (place, is_used) in [(1, used[0]), (2, used[1])] {
        if !is_used {
            matrix[place][place] = 1.0;
        }
    }
    let solution = solve(matrix)?;
    if solution[0] <= 0.0 || solution.iter().any(|value| *value < 0.0 || !value.is_finite()) {
        return None;
    }
    let error = |&(depth, rate): &(f64, f64)| {
        let told: f64 = row(depth, rate).iter().zip(solution).map(|(factor, value)| factor * value).sum();
        (told - 1.0).powi(2)
    };
    Some((points.iter().map(error).sum(), solution))
}

/// Gaussian elimination with pivoting.
fn solve(mut matrix: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for column in 0..3 {
        let pivot = (column..3)
            .max_by(|&one, &other| matrix[one][column].abs().total_cmp(&matrix[other][column].abs()))?;
        matrix.swap(column, pivot);
        if matrix[column][column].abs() < 1e-300 {
            return None;
        }
        for line in 0..3 {
            if line == column {
                continue;
            }
            let factor = matrix[line][column] / matrix[column][column];
            let above = matrix[column];
            for (cell, value) in matrix[line].iter_mut().zip(above) {
                *cell -= factor * value;
            }
        }
    }
    Some(std::array::from_fn(|place| matrix[place][3] / matrix[place][place]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPTHS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

    fn rates(law: Law) -> Vec<(f64, f64)> {
        DEPTHS.iter().map(|&depth| (depth, law.rate(depth))).collect()
    }

    #[test]
    fn a_known_law_is_found() {
        for (lambda, sigma, kappa) in
            [(10_000.0, 0.05, 0.0002), (500.0, 0.0, 0.0), (1e6, 0.3, 0.0), (20.0, 0.0, 0.001)]
        {
            let law = fit(&rates(Law { lambda, sigma, kappa, fit: 0.0 })).unwrap();
            assert!((law.lambda / lambda - 1.0).abs() < 1e-6, "{law:?}");
            assert!((law.sigma - sigma).abs() < 1e-6 && (law.kappa - kappa).abs() < 1e-8, "{law:?}");
            assert!(law.fit > 0.999_999, "{law:?}");
        }
    }

    #[test]
    fn noise_of_some_percent_does_little() {
        let mut points = rates(Law { lambda: 9000.0, sigma: 0.04, kappa: 0.000_3, fit: 0.0 });
        for (place, off) in
            [0.02, -0.015, 0.01, -0.02, 0.018, -0.01, 0.005, 0.02, -0.012].into_iter().enumerate()
        {
            points[place].1 *= 1.0 + off;
        }
        let law = fit(&points).unwrap();
        assert!((law.lambda / 9000.0 - 1.0).abs() < 0.05 && (law.sigma - 0.04).abs() < 0.01, "{law:?}");
        assert!((law.peak().unwrap() - 56.57).abs() < 8.0 && law.fit > 0.98, "{law:?}");
    }

    #[test]
    fn data_that_follows_no_law_fits_badly() {
        let points: Vec<(f64, f64)> = DEPTHS
            .iter()
            .enumerate()
            .map(|(place, &depth)| (depth, if place % 2 == 0 { 1000.0 } else { 9000.0 }))
            .collect();
        assert!(fit(&points).is_none_or(|law| law.fit < 0.5), "{:?}", fit(&points));
        // Rates that rise faster than the depth.
        let points: Vec<(f64, f64)> = DEPTHS.iter().map(|&depth| (depth, depth * depth)).collect();
        let law = fit(&points).unwrap();
        assert_eq!((law.sigma, law.kappa), (0.0, 0.0));
        assert!(law.fit < 0.9 && law.peak().is_none());
    }

    #[test]
    fn too_few_valid_points_give_no_law() {
        for points in [
            &[][..],
            &[(1.0, 5.0), (2.0, 9.0)],
            &[(1.0, 5.0), (1.0, 6.0), (2.0, 9.0)],
            &[(1.0, 5.0), (2.0, 0.0), (4.0, 9.0)],
            &[(1.0, 5.0), (2.0, f64::NAN), (4.0, 9.0)],
            &[(0.0, 5.0), (2.0, 6.0), (4.0, 9.0)],
        ] {
            assert_eq!(fit(points), None, "{points:?}");
        }
    }
}
