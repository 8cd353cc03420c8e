//! Grades, as the DSLReports speed test made them known: <https://www.dslreports.com/faq/17930>.
//!
//! Its thresholds are about the mean of what downloads and uploads add to the round trip: below 5 ms A+, 30 ms A, 60 ms
//! B, 200 ms C, 400 ms D, else F. There is no E. Other tests show grades with other thresholds.
//!
//! We compare the 95th percentile under load with the idle median. A test that compares means is more lenient.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// Where the thresholds come from.
pub const SOURCE: &str = "https://www.dslreports.com/faq/17930";

/// A grade; a worse one is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grade {
    /// Below 5 ms.
    APlus,
    /// Below 30 ms.
    A,
    /// Below 60 ms.
    B,
    /// Below 200 ms.
    C,
    /// Below 400 ms.
    D,
    /// 400 ms and more.
    F,
}

impl Grade {
    /// All grades but F, each with the delay in milliseconds that it stays below.
    pub const BELOW_MS: [(Grade, u32); 5] = [
        (Grade::APlus, 5),
        (Grade::A, 30),
        (Grade::B, 60),
        (Grade::C, 200),
        (Grade::D, 400),
    ];

    /// The grade of an added delay.
    #[must_use]
    pub fn of(added_ms: f64) -> Grade {
        let found = Grade::BELOW_MS.iter();
        found
            .clone()
            .find(|(_, below)| added_ms < f64::from(*below))
            .map_or(Grade::F, |(grade, _)| *grade)
    }

    /// How it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Grade::APlus => "A+",
            Grade::A => "A",
            Grade::B => "B",
            Grade::C => "C",
            Grade::D => "D",
            Grade::F => "F",
        }
    }
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Grade {
    type Err = String;

    fn from_str(text: &str) -> Result<Grade, String> {
        let grades = Grade::BELOW_MS.iter().map(|(grade, _)| *grade);
        grades
            .chain([Grade::F])
            .find(|grade| grade.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("\"{text}\" is no grade; there are A+, A, B, C, D and F"))
    }
}

impl Serialize for Grade {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}
