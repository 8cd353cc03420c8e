//! Secrets and subscriber data that must not reach a log.

use core::fmt;

/// A value that always prints as `[redacted]`.
///
/// ```
/// use base::Redacted;
///
/// let secret = Redacted::new("tunnel secret");
/// assert_eq!(format!("{secret} {secret:?}"), "[redacted] [redacted]");
/// assert_eq!(*secret.reveal(), "tunnel secret");
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Redacted<T>(T);

impl<T> Redacted<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value, for the one place that uses it.
    pub const fn reveal(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl<T> fmt::Display for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_format_prints_the_value_of_a_struct_that_holds_one() {
        #[derive(Debug)]
        #[allow(dead_code, reason = "read by Debug alone")]
        struct Peer {
            secret: Redacted<Vec<u8>>,
        }
        let peer = Peer {
            secret: Redacted::new(b"abc".to_vec()),
        };
        assert_eq!(format!("{peer:?}"), "Peer { secret: [redacted] }");
        assert!(!format!("{peer:#?}").contains("97"));
        assert_eq!(format!("{:>12}", Redacted::new("x")), "[redacted]");
    }
}
