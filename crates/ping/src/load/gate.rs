//! Who may load: streams in use and starts in the last minute, by source and in all.
//!
//! A source is an IPv4 address or an IPv6 /64, since one host has many IPv6 addresses. Sources that use nothing and
//! have their full allowance are forgotten. A full table refuses sources that it does not know.

use std::net::IpAddr;

use base::{Duration, Instant};

use super::Refusal;

/// Sources that are remembered.
const SOURCES_MAX: usize = 1_024;
/// The time that [`Limits::starts_per_minute`] is about.
const MINUTE: Duration = Duration::from_secs(60);

/// The limits of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Streams that one source may have at once.
    pub streams_per_source: u16,
    /// Streams of all sources at once.
    pub streams: u16,
    /// Streams that one source may start within a minute.
    pub starts_per_minute: u16,
    /// Longest stream.
    pub duration: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            streams_per_source: 16,
            streams: 64,
            starts_per_minute: 120,
            duration: Duration::from_secs(60),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Source {
    key: u128,
    open: u16,
    /// Starts in this minute, and when it began.
    starts: u16,
    since: Instant,
}

/// The table of sources.
#[derive(Debug)]
pub struct Gate {
    limits: Limits,
    sources: Vec<Source>,
    open: u16,
    /// Streams admitted.
    pub admitted: u64,
    /// Streams refused.
    pub refused: u64,
}

impl Gate {
    /// A service without streams.
    #[must_use]
    pub fn new(limits: Limits) -> Gate {
        Gate {
            limits,
            sources: Vec::new(),
            open: 0,
            admitted: 0,
            refused: 0,
        }
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Takes a stream for a source. Give it back with [`Gate::release`].
    ///
    /// # Errors
    /// Why the source gets none.
    pub fn admit(&mut self, from: IpAddr, now: Instant) -> Result<(), Refusal> {
        let taken = self.take(from, now);
        match taken {
            Ok(()) => self.admitted += 1,
            Err(_) => self.refused += 1,
        }
        taken
    }

    fn take(&mut self, from: IpAddr, now: Instant) -> Result<(), Refusal> {
        let key = key(from);
        let known = self.sources.iter().position(|source| source.key == key);
        let place = match known {
            Some(place) => place,
            None => self.add(key, now).ok_or(Refusal::Full)?,
        };
        let source = &mut self.sources[place];
        if now.since(source.since) >= MINUTE {
            (source.starts, source.since) = (0, now);
        }
        if source.starts >= self.limits.starts_per_minute {
            return Err(Refusal::TooOften);
        }
        if source.open >= self.limits.streams_per_source {
            return Err(Refusal::SourceFull);
        }
        if self.open >= self.limits.streams {
            return Err(Refusal::Full);
        }
        source.open += 1;
        source.starts += 1;
        self.open += 1;
        Ok(())
    }

    fn add(&mut self, key: u128, now: Instant) -> Option<usize> {
        if self.sources.len() >= SOURCES_MAX {
            self.sources
                .retain(|source| source.open > 0 || now.since(source.since) < MINUTE);
        }
        if self.sources.len() >= SOURCES_MAX {
            return None;
        }
        self.sources.push(Source {
            key,
            open: 0,
            starts: 0,
            since: now,
        });
        Some(self.sources.len() - 1)
    }

    /// Gives a stream of a source back.
    pub fn release(&mut self, from: IpAddr) {
        let key = key(from);
        if let Some(source) = self.sources.iter_mut().find(|source| source.key == key)
            && source.open > 0
        {
            source.open -= 1;
            self.open -= 1;
        }
    }
}

/// An IPv4 address, also if it is mapped into IPv6, or the /64 of an IPv6 address.
fn key(from: IpAddr) -> u128 {
    match from.to_canonical() {
        IpAddr::V4(four) => u128::from_be_bytes(four.to_ipv6_mapped().octets()),
        IpAddr::V6(six) => u128::from_be_bytes(six.octets()) >> 64 << 64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        streams_per_source: 2,
        streams: 3,
        starts_per_minute: 4,
        duration: Duration::from_secs(10),
    };

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_source_has_its_streams_and_all_sources_have_theirs() {
        let (mut gate, now) = (Gate::new(LIMITS), Instant::ZERO);
        let (a, b, c) = (ip("192.0.2.1"), ip("192.0.2.2"), ip("192.0.2.3"));
        assert_eq!(gate.admit(a, now), Ok(()));
        assert_eq!(gate.admit(a, now), Ok(()));
        assert_eq!(gate.admit(a, now), Err(Refusal::SourceFull));
        assert_eq!(gate.admit(b, now), Ok(()));
        assert_eq!(gate.admit(c, now), Err(Refusal::Full));
        gate.release(a);
        assert_eq!(gate.admit(c, now), Ok(()));
        assert_eq!((gate.admitted, gate.refused), (4, 2));
        // A source without streams cannot give back those of others.
        gate.release(ip("192.0.2.9"));
        assert_eq!(gate.admit(b, now), Err(Refusal::Full));
    }

    #[test]
    fn a_source_starts_so_many_streams_in_a_minute() {
        let mut gate = Gate::new(LIMITS);
        let a = ip("2001:db8::1");
        for _ in 0..4 {
            assert_eq!(gate.admit(a, Instant::ZERO), Ok(()));
            gate.release(a);
        }
        let soon = Instant::ZERO + Duration::from_secs(59);
        // Another address of the same /64 is the same source; another /64 is not.
        assert_eq!(
            gate.admit(ip("2001:db8::ffff"), soon),
            Err(Refusal::TooOften)
        );
        assert_eq!(gate.admit(ip("2001:db8:0:1::1"), soon), Ok(()));
        let later = Instant::ZERO + MINUTE;
        assert_eq!(gate.admit(a, later), Ok(()));
    }

    #[test]
    fn a_full_table_refuses_strangers_and_forgets_idle_sources() {
        let mut gate = Gate::new(LIMITS);
        for number in 0..SOURCES_MAX as u32 {
            let from = IpAddr::from((0x0a00_0000 + number).to_be_bytes());
            assert_eq!(gate.admit(from, Instant::ZERO), Ok(()));
            gate.release(from);
        }
        let stranger = ip("192.0.2.1");
        assert_eq!(gate.admit(stranger, Instant::ZERO), Err(Refusal::Full));
        let later = Instant::ZERO + MINUTE;
        assert_eq!(gate.admit(stranger, later), Ok(()));
        assert_eq!(gate.sources.len(), 1);
    }

    #[test]
    fn a_mapped_address_is_the_same_source() {
        let mut gate = Gate::new(LIMITS);
        let now = Instant::ZERO;
        assert_eq!(gate.admit(ip("::ffff:192.0.2.1"), now), Ok(()));
        assert_eq!(gate.admit(ip("192.0.2.1"), now), Ok(()));
        assert_eq!(gate.admit(ip("192.0.2.1"), now), Err(Refusal::SourceFull));
    }
}
