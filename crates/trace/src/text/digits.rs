//! Numbers as decimal text, the same as by [`core::fmt`] and faster.

/// Powers of ten, up to the largest number of decimals in reports.
const SCALES: [u64; 4] = [1, 10, 100, 1000];

/// Limit of a number times its power of ten. Below it, the error of the product is far smaller than [`NEAR`].
const LARGE: f64 = 1e10;

/// Smallest distance of a number from the middle between two texts at which the nearer text is certainly correct.
const NEAR: f64 = 1e-4;

/// Room for the text of a number.
#[derive(Debug)]
pub(super) struct Digits {
    octets: [u8; 24],
}

impl Digits {
    pub(super) const fn new() -> Digits {
        Digits { octets: [0; 24] }
    }

    /// A whole number.
    pub(super) fn whole(&mut self, number: u64) -> &str {
        self.decimal(number, 0)
    }

    /// A number with up to 3 decimals. `None` if the rounding is not certain: then use [`core::fmt`].
    pub(super) fn fixed(&mut self, number: f64, decimals: usize) -> Option<&str> {
        let scaled = number * *SCALES.get(decimals)? as f64;
        if number.is_sign_negative() || scaled.is_nan() || scaled >= LARGE {
            return None;
        }
        let floor = scaled as u64;
        let rest = scaled - floor as f64;
        if (rest - 0.5).abs() < NEAR {
            return None;
        }
        Some(self.decimal(floor + u64::from(rest > 0.5), decimals))
    }

    /// A number with this many decimals.
    fn decimal(&mut self, number: u64, decimals: usize) -> &str {
        let mut left = number;
        let mut at = self.octets.len();
        let mut put = |octet| {
            at -= 1;
            self.octets[at] = octet;
        };
        for _ in 0..decimals {
            put(b'0' + (left % 10) as u8);
            left /= 10;
        }
        if decimals > 0 {
            put(b'.');
        }
        loop {
            put(b'0' + (left % 10) as u8);
            left /= 10;
            if left == 0 {
                break;
            }
        }
        // Digits are UTF-8.
        core::str::from_utf8(&self.octets[at..]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whole_numbers_of_every_length() {
        let mut number = 1_u64;
        for _ in 0..19 {
            for number in [number - 1, number, number * 7] {
                assert_eq!(Digits::new().whole(number), number.to_string());
            }
            number *= 10;
        }
        assert_eq!(Digits::new().whole(u64::MAX), u64::MAX.to_string());
    }

    #[test]
    fn leaves_what_is_not_plain() {
        for number in [0.25, -0.0, -1.0, f64::NAN, f64::INFINITY, 1e300, 0.05] {
            assert_eq!(Digits::new().fixed(number, 1), None, "{number}");
        }
        assert_eq!(Digits::new().fixed(1.0, 4), None);
    }

    proptest! {
        #[test]
        fn rounds_as_fmt_does(number in any::<u64>(), shift in 0..64u32, decimals in 0..4usize, by in 1..1_000_000u32) {
            for number in [(number >> shift) as f64 / f64::from(by), (number >> shift) as f64 / 1e6] {
                if let Some(text) = Digits::new().fixed(number, decimals) {
                    prop_assert_eq!(text, format!("{number:.decimals$}"));
                }
            }
        }
    }
}
