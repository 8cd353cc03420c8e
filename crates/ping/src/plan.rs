//! The plan of an experiment: its streams, and the limits on them.

use std::net::IpAddr;

use base::Duration;
use serde::{Deserialize, Serialize};

use crate::probe;

/// The most streams of one experiment.
pub const STREAMS_MAX: usize = 4_096;
/// The most packets a second, over all streams.
pub const RATE_MAX: u64 = 100_000;
/// The longest timeout of a reply: it fits a [`Sample`](crate::Sample), with room for later replies.
pub const WAIT_MAX: Duration = Duration::from_secs(600);
/// The longest interval, a day.
pub const INTERVAL_MAX: Duration = Duration::from_secs(86_400);
/// Samples stored per experiment by default: 320 MB of memory.
pub const SAMPLES_DEFAULT: u64 = 20_000_000;

/// The kind of a stream's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// ICMP or ICMPv6 echo requests.
    Icmp,
    /// UDP datagrams to our own responder.
    Udp {
        /// The responder's port.
        port: u16,
    },
}

/// One stream: packets of one kind to one destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamPlan {
    /// Its name in results, unique in the experiment.
    pub name: String,
    /// The destination as the user typed it.
    pub host: String,
    /// Its address.
    pub address: IpAddr,
    /// The kind of packets.
    pub protocol: Protocol,
    /// TOS octet or traffic class, with its ECN bits.
    pub tos: u8,
    /// Bytes of data after the ICMP or UDP header.
    pub size: u16,
    /// Time between packets, in nanoseconds in the file.
    #[serde(rename = "interval_ns", with = "nanos")]
    pub interval: Duration,
    /// When the first packet is due after the start, in nanoseconds in the file.
    #[serde(rename = "offset_ns", with = "nanos")]
    pub offset: Duration,
    /// Number of packets; `None` means until stopped.
    pub count: Option<u64>,
}

/// An experiment's streams and common options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The streams.
    pub streams: Vec<StreamPlan>,
    /// The timeout of a reply; a later reply counts as late.
    pub wait: Duration,
    /// Samples stored, over all streams. Later packets are counted only.
    pub samples_max: u64,
}

/// Why a plan cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The plan has no stream.
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
        /// The size in the plan.
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
    /// The smallest and largest number of data bytes for this protocol and address.
    #[must_use]
    pub fn sizes(&self) -> (u16, u16) {
        let min = match self.protocol {
            Protocol::Icmp => 0,
            Protocol::Udp { .. } => probe::UDP_MIN,
        };
        // 65,535 less 8 bytes of ICMP or UDP header and, where it counts (IPv4), 20 of IP header.
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
    /// A plan with the timeout `wait` and the default limit on samples. The streams are spread over their intervals:
    /// the i-th of n starts i/n of its interval late, so streams with equal intervals never send at once.
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

    /// Checks whether the plan can be run.
    ///
    /// # Errors
    /// The first reason why it cannot.
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
