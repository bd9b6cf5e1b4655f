//! Quantiles of Student's t distribution, which are used for confidence intervals.

/// The probability 0.975, and its quantile of the normal distribution.
const P_975: (f64, f64) = (0.975, 1.959_963_984_540_054);
const P_995: (f64, f64) = (0.995, 2.575_829_303_548_901);

/// Returns the 97.5 % quantile of Student's t for this many degrees of freedom, which gives 95 %
/// intervals. Infinite for 0 degrees.
pub(crate) fn t_975(degrees: u64) -> f64 {
    t(P_975, degrees)
}

/// Returns the 99.5 % quantile of Student's t for this many degrees of freedom, which gives 99 %
/// intervals. Infinite for 0 degrees.
#[must_use]
pub fn t_995(degrees: u64) -> f64 {
    t(P_995, degrees)
}

/// Returns a quantile of Student's t, given the same quantile `z` of the normal distribution. Uses
/// closed forms for 1 and 2 degrees, and otherwise the expansion in powers of `1 / degrees`
/// (Abramowitz and Stegun 26.7.5).
fn t((p, z): (f64, f64), degrees: u64) -> f64 {
    match degrees {
        0 => f64::INFINITY,
        1 => (std::f64::consts::PI * (p - 0.5)).tan(),
        2 => (2.0 * p - 1.0) * (2.0 / (4.0 * p * (1.0 - p))).sqrt(),
        _ => {
            let n = degrees as f64;
            let terms = [
                (z.powi(3) + z) / 4.0,
                (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
                (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
                (79.0 * z.powi(9) + 776.0 * z.powi(7) + 1482.0 * z.powi(5)
                    - 1920.0 * z.powi(3)
                    - 945.0 * z)
                    / 92_160.0,
            ];
            let sum = terms.iter().rev().fold(0.0, |sum, term| (sum + term) / n);
            z + sum
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{t_975, t_995};

    #[test]
    fn as_the_tables_have_it() {
        for (degrees, table) in [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (5, 2.571),
            (9, 2.262),
            (30, 2.042),
            (100, 1.984),
            (1_000_000, 1.960),
        ] {
            let quantile = t_975(degrees);
            assert!((quantile - table).abs() < 0.004, "{degrees}: {quantile}");
        }
        for (degrees, table) in [
            (1, 63.657),
            (2, 9.925),
            (4, 4.604),
            (5, 4.032),
            (9, 3.250),
            (30, 2.750),
            (1_000_000, 2.576),
        ] {
            let quantile = t_995(degrees);
            assert!((quantile - table).abs() < 0.012, "{degrees}: {quantile}");
        }
        assert_eq!(t_975(0), f64::INFINITY);
    }
}
