//! What is to be sent: streams, and the limits on them.

use std::net::IpAddr;

use base::Duration;
use serde::{Deserialize, Serialize};

use crate::probe;

/// Streams of one experiment at most.
pub const STREAMS_MAX: usize = 4_096;
/// Packets a second at most, of all streams together.
pub const RATE_MAX: u64 = 100_000;
/// The longest wait for a reply: what fits a [`Sample`](crate::Sample) with room for replies that come later still.
pub const WAIT_MAX: Duration = Duration::from_secs(600);
/// The longest interval, a day.
pub const INTERVAL_MAX: Duration = Duration::from_secs(86_400);
/// Samples kept of one experiment unless it is said otherwise: 320 MB of memory.
pub const SAMPLES_DEFAULT: u64 = 20_000_000;

/// What a stream's packets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// ICMP or ICMPv6 echo requests.
    Icmp,
    /// UDP datagrams to our own responder.
    Udp {
        /// The port that it listens on.
        port: u16,
    },
}

/// One stream: packets of one kind to one destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamPlan {
    /// What it is called in results; unlike any other's.
    pub name: String,
    /// The destination as it was typed.
    pub host: String,
    /// Its address.
    pub address: IpAddr,
    /// What is sent.
    pub protocol: Protocol,
    /// TOS octet or traffic class, with its ECN bits.
    pub tos: u8,
    /// Octets of data after the ICMP or UDP header.
    pub size: u16,
    /// Time between packets, in nanoseconds in the file.
    #[serde(rename = "interval_ns", with = "nanos")]
    pub interval: Duration,
    /// When the first is due after the start, in nanoseconds in the file.
    #[serde(rename = "offset_ns", with = "nanos")]
    pub offset: Duration,
    /// How many are sent; `None` until stopped.
    pub count: Option<u64>,
}

/// An experiment's streams and what they have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The streams.
    pub streams: Vec<StreamPlan>,
    /// How long a reply is waited for; one that comes later is late.
    pub wait: Duration,
    /// Samples kept of all streams together. What comes after is counted, and not kept.
    pub samples_max: u64,
}

/// Why a plan cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Nothing to send.
    #[error("no stream: name a host")]
    NoStream,
    /// More streams than [`STREAMS_MAX`].
    #[error("{0} streams: at most {STREAMS_MAX} run at once")]
    TooManyStreams(usize),
    /// More packets a second than [`RATE_MAX`].
    #[error(
        "{0} packets a second in all: at most {RATE_MAX}; use longer intervals or fewer streams"
    )]
    TooFast(u64),
    /// An interval of zero, or above [`INTERVAL_MAX`].
    #[error("{name}: an interval is above 0 and at most a day")]
    Interval {
        /// The stream.
        name: String,
    },
    /// A size that no packet can have.
    #[error("{name}: {size} octets: the size is {min} to {max} with this protocol")]
    Size {
        /// The stream.
        name: String,
        /// What was asked for.
        size: u16,
        /// The least.
        min: u16,
        /// The most.
        max: u16,
    },
    /// A count of zero.
    #[error("{name}: a count is at least 1")]
    Count {
        /// The stream.
        name: String,
    },
    /// A wait of zero, or above [`WAIT_MAX`].
    #[error("a wait is above 0 and at most 600 s")]
    Wait,
}

impl StreamPlan {
    /// The least and the most octets of data with this protocol and address.
    #[must_use]
    pub fn sizes(&self) -> (u16, u16) {
        let min = match self.protocol {
            Protocol::Icmp => 0,
            Protocol::Udp { .. } => probe::UDP_MIN,
        };
        // 65,535 less 8 octets of ICMP or UDP and, where they count (IPv4), 20 of IP.
        let max = if self.address.is_ipv4() {
            65_507
        } else {
            65_527
        };
        (min, max)
    }

    fn check(&self) -> Result<(), PlanError> {
        let name = || self.name.clone();
        let (min, max) = self.sizes();
        if self.size < min || self.size > max {
            let (name, size) = (name(), self.size);
            return Err(PlanError::Size {
                name,
                size,
                min,
                max,
            });
        }
        if self.interval == Duration::ZERO || self.interval > INTERVAL_MAX {
            return Err(PlanError::Interval { name: name() });
        }
        if self.count == Some(0) {
            return Err(PlanError::Count { name: name() });
        }
        Ok(())
    }
}

impl Plan {
    /// A plan with `wait` and the usual limit on samples, its streams spread over their intervals: the i-th of n
    /// begins i/n of its interval after the start, so that no two send at once where intervals are alike.
    #[must_use]
    pub fn spread(mut streams: Vec<StreamPlan>, wait: Duration) -> Plan {
        let count = streams.len() as u128;
        for (index, stream) in streams.iter_mut().enumerate() {
            let share = u128::from(stream.interval.as_nanos()) * index as u128 / count;
            stream.offset = Duration::from_nanos(share as u64);
        }
        Plan {
            streams,
            wait,
            samples_max: SAMPLES_DEFAULT,
        }
    }

    /// Packets a second of all streams, rounded up.
    #[must_use]
    pub fn rate_pps(&self) -> u64 {
        let micro: u128 = self
            .streams
            .iter()
            .map(|stream| 1_000_000_000_000_000 / u128::from(stream.interval.as_nanos().max(1)))
            .sum();
        u64::try_from(micro.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// Whether it can be carried out.
    ///
    /// # Errors
    /// The first reason why not.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.streams.is_empty() {
            return Err(PlanError::NoStream);
        }
        if self.streams.len() > STREAMS_MAX {
            return Err(PlanError::TooManyStreams(self.streams.len()));
        }
        if self.wait == Duration::ZERO || self.wait > WAIT_MAX {
            return Err(PlanError::Wait);
        }
        self.streams.iter().try_for_each(StreamPlan::check)?;
        match self.rate_pps() {
            rate if rate > RATE_MAX => Err(PlanError::TooFast(rate)),
            _ => Ok(()),
        }
    }
}

/// Spans as whole nanoseconds.
pub(crate) mod nanos {
    use base::Duration;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(span.as_nanos())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(interval: Duration) -> StreamPlan {
        StreamPlan {
            name: "a".into(),
            host: "a".into(),
            address: IpAddr::from([192, 0, 2, 1]),
            protocol: Protocol::Icmp,
            tos: 0,
            size: 56,
            interval,
            offset: Duration::ZERO,
            count: None,
        }
    }

    #[test]
    fn streams_are_spread_evenly_over_their_interval() {
        let streams = vec![stream(Duration::from_millis(10)); 4];
        let plan = Plan::spread(streams, Duration::from_secs(1));
        let offsets: Vec<u64> = plan
            .streams
            .iter()
            .map(|stream| stream.offset.as_nanos())
            .collect();
        assert_eq!(offsets, [0, 2_500_000, 5_000_000, 7_500_000]);
        assert_eq!((plan.rate_pps(), plan.check()), (400, Ok(())));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_reason() {
        let plan = |streams| Plan::spread(streams, Duration::from_secs(1));
        assert_eq!(plan(vec![]).check(), Err(PlanError::NoStream));
        let fast = stream(Duration::from_micros(9));
        assert_eq!(plan(vec![fast]).check(), Err(PlanError::TooFast(111_112)));
        let udp = StreamPlan {
            protocol: Protocol::Udp { port: 9 },
            size: 4,
            ..stream(Duration::from_secs(1))
        };
        let text = plan(vec![udp]).check().unwrap_err().to_string();
        assert!(text.starts_with("a: 4 octets: the size is "), "{text}");
        let never = StreamPlan {
            count: Some(0),
            ..stream(Duration::from_secs(1))
        };
        assert!(plan(vec![never]).check().is_err());
        assert!(plan(vec![stream(Duration::ZERO)]).check().is_err());
        let mut hasty = plan(vec![stream(Duration::from_secs(1))]);
        hasty.wait = Duration::from_secs(601);
        assert_eq!(hasty.check(), Err(PlanError::Wait));
    }
}
