//! The link, and the gateway's treatment of it: queues by name, or those of a policy.

use base::Duration;
use qos::classify::KeySet;
use qos::fifo::Limit;
use qos::tree::{Overhead, Spec, TbfSpec};
use qos::{fair, fq_codel, sfq, tbf};
use serde::Serialize;

/// Assumed size of the published modem's FIFO, in packets. That is 0.48 s at 2.5 Mbit/s, which
/// agrees with the published additional second for a page of three round trips. With a limit in
/// packets, it loses 69 % of a flood of three times the link's rate, for small and large packets
/// alike; a limit in bytes would favour small packets.
pub const FIFO_DEFAULT: u32 = 100;

/// Percentage of the link that a treatment uses, so that packets wait in its queues and not in the
/// modem's.
const SHAPED_PERCENT: u64 = 96;

/// Size of a full packet on the line, in bytes.
const FULL: u32 = 1_514;

/// Bytes that the line adds to an IP packet: Ethernet's header.
pub(super) const ETHERNET: Overhead = Overhead {
    per_packet: 14,
    mpu: 0,
    atm: false,
};

/// Limit of packets in the gateway in a direction that it does not shape.
const OPEN: u32 = 1_000;

/// The slow link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Upstream rate, in bits per second on the line.
    pub up_bps: u64,
    /// Downstream rate.
    pub down_bps: u64,
    /// Limit of packets in the modem, in each direction.
    pub fifo_packets: u32,
    /// One-way delay in nanoseconds.
    pub delay_ns: u64,
}

impl Default for Link {
    /// 2.5 Mbit/s up and 20 Mbit/s down, 10 ms each way.
    fn default() -> Self {
        Self {
            up_bps: 2_500_000,
            down_bps: 20_000_000,
            fifo_packets: FIFO_DEFAULT,
            delay_ns: 10_000_000,
        }
    }
}

impl Link {
    /// One-way delay.
    #[must_use]
    pub fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay_ns)
    }

    /// The modem's disciplines: a rate and a FIFO for each direction.
    #[must_use]
    pub fn modem(&self) -> Both {
        let way = |rate_bps| shaped(rate_bps, Spec::Fifo(Limit::Packets(self.fifo_packets)));
        Both {
            up: way(self.up_bps),
            down: way(self.down_bps),
            overhead: ETHERNET,
        }
    }

    /// The longest round trip of a packet, in milliseconds.
    #[must_use]
    pub fn longest_ms(&self) -> u64 {
        let full = u64::from(self.fifo_packets) * u64::from(FULL) * 8_000;
        full / self.up_bps.max(1) + full / self.down_bps.max(1) + self.delay_ns / 500_000
    }
}

/// Disciplines of both directions, as plain data.
#[derive(Debug, Clone, PartialEq)]
pub struct Both {
    /// Upstream.
    pub up: Spec,
    /// Downstream.
    pub down: Spec,
    /// What the link layer adds to each packet.
    pub overhead: Overhead,
}

/// The gateway's treatment in the rows with a policy.
#[derive(Debug, Clone, PartialEq)]
pub enum Treatment {
    /// Nothing.
    None,
    /// A rate below the link's, and a FIFO.
    Pfifo,
    /// A rate, and a queue for each flow.
    Sfq,
    /// A rate, and a queue with controlled delay for each flow.
    FqCodel,
    /// A rate, and the same share for each host, then for each flow.
    Fair,
    /// An operator's policy.
    Policy {
        /// Its name.
        name: String,
        /// Its disciplines.
        both: Box<Both>,
    },
}

impl Treatment {
    /// The named treatments, the simplest first.
    pub const NAMED: [(&'static str, Treatment); 5] = [
        ("none", Treatment::None),
        ("pfifo", Treatment::Pfifo),
        ("sfq", Treatment::Sfq),
        ("fq_codel", Treatment::FqCodel),
        ("fair", Treatment::Fair),
    ];

    /// The treatment of this name; `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let mut named = Self::NAMED.into_iter();
        named
            .find(|(known, _)| *known == name)
            .map(|(_, treatment)| treatment)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        if let Self::Policy { name, .. } = self {
            return name;
        }
        let named = Self::NAMED.iter().find(|(_, treatment)| treatment == self);
        named.map_or("none", |(name, _)| name)
    }

    /// The policy file with the same queues, for `headend qos apply`; `None` if nothing is shaped,
    /// or if it is a policy file already.
    #[must_use]
    pub fn policy(&self, link: &Link) -> Option<String> {
        let template = match self {
            Self::None | Self::Policy { .. } => return None,
            Self::Pfifo => "pfifo",
            Self::Sfq => "sfq",
            Self::FqCodel => "flows",
            Self::Fair => "home",
        };
        Some(format!(
            "[link]\nup = {}\ndown = {}\noverhead = {{ per_packet = {}, mpu = 0, atm = false }}\n[shape]\ntemplate = \"{template}\"\n",
            share(link.up_bps),
            share(link.down_bps),
            ETHERNET.per_packet
        ))
    }

    /// Its disciplines on this link.
    #[must_use]
    pub fn both(&self, link: &Link) -> Both {
        let (up_bps, down_bps) = (share(link.up_bps), share(link.down_bps));
        let both = |queue: &dyn Fn(u64, bool) -> Spec| Both {
            up: shaped(up_bps, queue(up_bps, false)),
            down: shaped(down_bps, queue(down_bps, true)),
            overhead: ETHERNET,
        };
        match self {
            Self::None => Both {
                up: Spec::Fifo(Limit::Packets(OPEN)),
                down: Spec::Fifo(Limit::Packets(OPEN)),
                overhead: ETHERNET,
            },
            Self::Pfifo => both(&|_, _| Spec::Fifo(Limit::Packets(link.fifo_packets))),
            Self::Sfq => both(&|_, _| Spec::Sfq(sfq::Options::default())),
            Self::FqCodel => both(&|rate_bps, _| {
                let mut options = fq_codel::Options::default();
                options.parameters.target = target(rate_bps);
                Spec::FqCodel(options)
            }),
            Self::Fair => both(&|rate_bps, is_down| {
                let mut options = fair::Options::default();
                options.codel.target = target(rate_bps);
                if is_down {
                    options.hosts = KeySet::HOST_DST;
                }
                Spec::Fair(options)
            }),
            Self::Policy { both, .. } => (**both).clone(),
        }
    }
}

/// The rate to which a link's rate is shaped.
#[must_use]
pub fn share(rate_bps: u64) -> u64 {
    (u128::from(rate_bps) * u128::from(SHAPED_PERCENT) / 100) as u64
}

/// RFC 8290 5.2.2: the target is at least the transmission time of a full packet.
fn target(rate_bps: u64) -> Duration {
    let packet_ns = u64::from(FULL) * 8 * 1_000_000_000 / rate_bps.max(1);
    Duration::from_nanos(packet_ns.max(5_000_000))
}

/// A rate limit above a queue. The bucket holds 4 ms, so that a thread that wakes up late loses no
/// throughput, and at least two full packets.
pub(super) fn shaped(rate_bps: u64, queue: Spec) -> Spec {
    let burst = u32::try_from(rate_bps / 8 / 250).unwrap_or(u32::MAX);
    Spec::Tbf(TbfSpec {
        options: tbf::Options {
            rate_bps,
            burst: burst.max(2 * FULL + 72),
            peak: None,
        },
        child: Box::new(queue),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_treatment_is_found_by_its_name_and_can_be_made() {
        for (name, treatment) in Treatment::NAMED {
            assert_eq!(Treatment::named(name), Some(treatment.clone()));
            assert_eq!(treatment.name(), name);
            let both = treatment.both(&Link::default());
            for spec in [both.up, both.down] {
                let tree = qos::tree::Tree::new(&spec, 1, base::Instant::ZERO);
                assert!(tree.is_ok(), "{name}");
            }
        }
        assert_eq!(Treatment::named("cake"), None);
    }

    #[test]
    fn each_treatment_that_shapes_is_a_policy_of_the_same_rates() {
        let link = Link::default();
        for (name, treatment) in Treatment::NAMED {
            let Some(text) = treatment.policy(&link) else {
                assert_eq!(name, "none");
                continue;
            };
            let (policy, _) = qos::policy::Policy::parse(&text).expect(name);
            assert_eq!(policy.up_bps(), Some(2_400_000));
            assert_eq!(policy.down_bps(), Some(19_200_000));
            assert_eq!(policy.overhead(), ETHERNET);
        }
    }

    #[test]
    fn the_target_is_never_below_a_packet_s_time() {
        assert_eq!(target(1_000_000_000), Duration::from_millis(5));
        assert!(target(1_000_000) > Duration::from_millis(12));
    }

    #[test]
    fn the_longest_way_is_both_buffers_and_both_delays() {
        // 100 packets of 1,514 octets: 484 ms at 2.5 Mbit/s, 60 ms at 20 Mbit/s.
        assert_eq!(Link::default().longest_ms(), 484 + 60 + 20);
    }
}
