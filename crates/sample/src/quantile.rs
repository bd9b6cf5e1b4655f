//! Quantiles of Student's t distribution, which intervals take.

/// The probability of a quantile, and that quantile of the normal distribution.
const P_975: (f64, f64) = (0.975, 1.959_963_984_540_054);
const P_995: (f64, f64) = (0.995, 2.575_829_303_548_901);

/// The 97.5 % quantile of Student's t with so many degrees of freedom, for intervals of 95 %;
/// infinite for none.
pub(crate) fn t_975(degrees: u64) -> f64 {
    t(P_975, degrees)
}

/// The 99.5 % quantile of Student's t with so many degrees of freedom, for intervals of 99 %;
/// infinite for none.
#[must_use]
pub fn t_995(degrees: u64) -> f64 {
    t(P_995, degrees)
}

/// The expansion by powers of `1 / degrees` (Abramowitz and Stegun 26.7.5); 1 and 2 have closed
/// forms.
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
            let found = t_975(degrees);
            assert!((found - table).abs() < 0.004, "{degrees}: {found}");
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
            let found = t_995(degrees);
            assert!((found - table).abs() < 0.012, "{degrees}: {found}");
        }
        assert_eq!(t_975(0), f64::INFINITY);
    }
}
