//! Axes: round ticks, and units that keep numbers short.

/// The quantity of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Octets,
    BitsPerSecond,
}

impl Unit {
    /// The unit for values up to `max`, and how many of the base unit one of it is.
    pub(super) fn scaled(self, max: f64) -> (&'static str, f64) {
        let scales: &[(&'static str, f64)] = match self {
            Unit::Seconds => &[("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)],
            Unit::Octets => &[("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("bytes", 1.0)],
            Unit::BitsPerSecond => &[
                ("Gbit/s", 1e9),
                ("Mbit/s", 1e6),
                ("kbit/s", 1e3),
                ("bit/s", 1.0),
            ],
        };
        let fits = scales.iter().find(|(_, scale)| max >= 2.0 * scale);
        *fits.unwrap_or(&scales[scales.len() - 1])
    }
}

/// The range of an axis with its ticks.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Distance of ticks.
    pub(super) step: f64,
    /// Name of the unit, and how many of the base unit it is.
    pub(super) unit: (&'static str, f64),
}

impl Axis {
    /// An axis that covers at least `low` to `high`, with about `ticks` ticks.
    pub(super) fn new(unit: Unit, low: f64, high: f64, ticks: u32) -> Axis {
        let (low, high) = if low.is_finite() && high.is_finite() {
            (low, high)
        } else {
            (0.0, 1.0)
        };
        let unit = unit.scaled(low.abs().max(high.abs()));
        // If all values are equal, the range is one unit.
        let high = if high - low > unit.1 * 1e-9 {
            high
        } else {
            low + unit.1
        };
        let rough = (high - low) / f64::from(ticks.max(1)) / unit.1;
        let power = 10_f64.powi(rough.log10().floor() as i32);
        let factor = [1.0, 2.0, 5.0]
            .into_iter()
            .find(|factor| factor * power >= rough * 0.999)
            .unwrap_or(10.0);
        Axis {
            low,
            high,
            step: factor * power * unit.1,
            unit,
        }
    }

    /// The ticks: value and label.
    pub(super) fn ticks(&self) -> impl Iterator<Item = (f64, String)> {
        let first = (self.low / self.step).ceil();
        let step = self.step / self.unit.1;
        let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
        let count = ((self.high - self.low) / self.step).clamp(0.0, 100.0) as u32 + 1;
        (0..=count)
            .map(move |index| first + f64::from(index))
            .filter(|tick| tick * self.step <= self.high + self.step * 1e-6)
            .map(move |tick| {
                let label = format!("{:.decimals$}", tick * step);
                (tick * self.step, grouped(&label))
            })
    }
}

/// Puts thin spaces between thousands.
fn grouped(number: &str) -> String {
    let end = number.find('.').unwrap_or(number.len());
    let mut text = String::with_capacity(number.len() + 8);
    for (at, character) in number.char_indices() {
        let left = end.saturating_sub(at);
        let behind_digit = number[..at].ends_with(|c: char| c.is_ascii_digit());
        if at < end && left > 0 && left.is_multiple_of(3) && behind_digit && end > 4 {
            text.push('\u{2009}');
        }
        text.push(character);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks().map(|(_, label)| label).collect()
    }

    #[test]
    fn puts_ticks_at_round_numbers() {
        let axis = Axis::new(Unit::Seconds, 0.0, 9.7, 5);
        assert_eq!(labels(&axis), ["0", "2", "4", "6", "8"]);
        let axis = Axis::new(Unit::Seconds, 0.0, 0.0021, 4);
        assert_eq!(axis.unit.0, "ms");
        assert_eq!(labels(&axis), ["0", "1", "2"]);
        let axis = Axis::new(Unit::Octets, 0.0, 17_031_738.0, 4);
        assert_eq!(axis.unit.0, "MB");
        assert_eq!(labels(&axis), ["0", "5", "10", "15"]);
        let axis = Axis::new(Unit::Seconds, 100.0, 101.0, 4);
        assert_eq!(labels(&axis), ["100.0", "100.5", "101.0"]);
    }

    #[test]
    fn has_ticks_for_any_numbers() {
        for (low, high) in [
            (0.0, 0.0),
            (5.0, 5.0),
            (f64::NAN, 1.0),
            (0.0, f64::INFINITY),
            (-1e18, 1e18),
            (9e18, 9e18),
            (1e-9, 2e-9),
        ] {
            let axis = Axis::new(Unit::Octets, low, high, 5);
            assert!(axis.high > axis.low && axis.step > 0.0);
            assert!(axis.ticks().count() <= 102, "{low} {high}");
        }
    }

    #[test]
    fn separates_thousands_from_ten_thousand_on() {
        assert_eq!(grouped("1500"), "1500");
        assert_eq!(grouped("150000"), "150\u{2009}000");
        assert_eq!(grouped("-12345.250"), "-12\u{2009}345.250");
    }
}
