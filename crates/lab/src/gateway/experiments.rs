//! Experiments besides the rows: B's pings in several settings.

use std::time::{Duration, Instant};

use qos::classify::{Bands, KeySet};
use qos::fifo::Limit;
use qos::pfifo_fast;
use qos::sfq::{self, Perturb};
use qos::tree::Spec;

use super::model::{self, Beside, Trips};
use super::outcome::{Experiment, Setting, Stream};
use super::pinger::{Pings, Target};
use super::rows::{BULK_CONNECTIONS, Load};
use super::run::{Place, Plan};
use super::stage::{DRAIN, Error, Stage, join};
use super::topology::{FAR, FARS};
use super::treatment::{Both, ETHERNET, Treatment, shaped, share};

/// Bytes of data in a ping that fills a packet.
const FULL_PING: u16 = 1_472;

/// Buckets of the SFQ that changes its hash. They are so few that collisions, rare with Linux's
/// 1,024 buckets, show in some measurements.
const DIVISOR: u32 = 8;

/// Interval at which that SFQ changes its hash.
const PERIOD: base::Duration = base::Duration::from_secs(5);

/// The pings and the other traffic of a setting.
struct Scene<'a> {
    /// The gateway's queue for upstream traffic.
    queue: Spec,
    load: Load,
    beside: Beside,
    /// Name, destination and TOS octet of each stream of pings.
    targets: &'a [(&'a str, std::net::Ipv4Addr, u8)],
}

impl Plan {
    /// Pings of B beside an upload of its own, all in one tunnel: before and after the queues see into it.
    ///
    /// # Errors
    /// As [`Plan::probe`].
    pub fn tunnel(&self) -> Result<Experiment, Error> {
        let settings = [
            ("keys of the outer header", KeySet::PLAIN),
            ("tunnel keys", KeySet::INNERMOST),
        ];
        let settings = settings.map(|(name, keys)| {
            let scene = Scene {
                queue: Spec::Sfq(sfq::Options {
                    keys,
                    seed: self.seed,
                    ..sfq::Options::default()
                }),
                load: Load::None,
                beside: Beside {
                    bulk_of_b: true,
                    tunnelled: true,
                    ..Beside::default()
                },
                targets: &[("ping in the tunnel", FAR, 0)],
            };
            self.setting(name, scene)
        });
        Ok(Experiment {
            name: "tunnel",
            title: "An upload and pings in one IPIP tunnel",
            how: vec![
                "B uploads and pings; all that it sends is one IPIP tunnel on the line, shaped by SFQ. By the keys of \
                 the outer header all of the tunnel is one flow, and a ping waits behind the upload; tunnel keys tell \
                 them apart."
                    .to_owned(),
                match self.place {
                    Place::Namespaces => {
                        "The outer header is added by the shaper before its queue and taken off behind the line, in \
                         user space: no module of the kernel is needed."
                    }
                    Place::Model => "The outer header is added by host B and taken off by the far side.",
                }
                .to_owned(),
            ],
            settings: settings.into_iter().collect::<Result<_, _>>()?,
        })
    }

    /// Pings of several TOS octets through `pfifo_fast` beside uploads: as Linux reads the octet, and as DSCP.
    ///
    /// # Errors
    /// As [`Plan::probe`].
    pub fn bands(&self) -> Result<Experiment, Error> {
        let settings = [
            ("as Linux reads it", Bands::LINUX),
            ("as DSCP", Bands::DSCP),
        ];
        let settings = settings.map(|(name, bands)| {
            let scene = Scene {
                queue: Spec::PfifoFast(pfifo_fast::Options {
                    limit: self.link.fifo_packets,
                    bands,
                }),
                load: Load::Bulk,
                beside: Beside::default(),
                targets: &[
                    ("0x00 default", FAR, 0x00),
                    ("0x02 default, ECT(0)", FAR, 0x02),
                    ("0x10 low delay", FAR, 0x10),
                    ("0xb8 EF", FAR, 0xb8),
                ],
            };
            self.setting(name, scene)
        });
        Ok(Experiment {
            name: "bands",
            title: "TOS octets and ECN in pfifo_fast",
            how: vec![
                "A uploads three times; B pings with several TOS octets at once. 0x02 is an ordinary packet whose \
                 sender understands ECN: it shares the band of 0x00 in both readings, where the reading of RFC 1349 \
                 put it below all others. EF is ahead of the uploads only where the octet is read as DSCP."
                    .to_owned(),
            ],
            settings: settings.into_iter().collect::<Result<_, _>>()?,
        })
    }

    /// Pings of three hosts through SFQ that changes its hash every 5 s, beside two floods of full packets.
    ///
    /// # Errors
    /// As [`Plan::probe`].
    pub fn perturb(&self) -> Result<Experiment, Error> {
        let settings = [
            (
                "packets stay in their old buckets (the old design)",
                Perturb::Stay,
            ),
            (
                "packets go with their flow (Linux since 2.6.39)",
                Perturb::Rehash,
            ),
            ("flows in one bucket stay apart (ours)", Perturb::Apart),
        ];
        let settings = settings.map(|(name, perturb)| {
            let scene = Scene {
                queue: Spec::Sfq(sfq::Options {
                    divisor: DIVISOR,
                    period: PERIOD,
                    perturb,
                    keys: KeySet::PLAIN,
                    seed: self.seed,
                    ..sfq::Options::default()
                }),
                load: Load::None,
                beside: Beside {
                    // The two floods together are one and a half times the link's rate.
                    floods: [FARS[1], FARS[2]]
                        .map(|to| (to, self.link.up_bps / 4 * 3))
                        .to_vec(),
                    ..Beside::default()
                },
                targets: &[
                    ("first host", FARS[0], 0),
                    ("second host", FARS[1], 0),
                    ("third host", FARS[2], 0),
                ],
            };
            self.setting(name, scene)
        });
        Ok(Experiment {
            name: "perturb",
            title: "SFQ that changes its hash under load",
            how: vec![format!(
                "Two floods of A fill the line with full packets ({}), while B pings three hosts. SFQ has {DIVISOR} \
                 buckets and changes its hash every 5 s: a ping that then shares a bucket with a flood waits behind it.",
                match self.place {
                    Place::Namespaces => "pings of 1,472 octets",
                    Place::Model => "datagrams of 1,400 octets",
                }
            )],
            settings: settings.into_iter().collect::<Result<_, _>>()?,
        })
    }

    fn setting(&self, name: &str, scene: Scene<'_>) -> Result<Setting, Error> {
        let names = scene.targets.iter().map(|target| target.0.to_owned());
        let names: Vec<String> = names.collect();
        let both = Both {
            up: shaped(share(self.link.up_bps), scene.queue.clone()),
            down: Spec::Fifo(Limit::Packets(1_000)),
            overhead: ETHERNET,
        };
        let treatment = Treatment::Policy {
            name: name.to_owned(),
            both: Box::new(both.clone()),
        };
        let plan = Plan {
            treatment,
            ..self.clone()
        };
        let trips = match self.place {
            Place::Model => {
                let targets = scene.targets.iter().map(|target| (target.1, target.2));
                let targets: Vec<_> = targets.collect();
                let setup = plan.setup(scene.load, BULK_CONNECTIONS, true);
                model::pings(&setup, &scene.beside, &targets)?
            }
            Place::Namespaces => plan.scene_here(&both, &scene)?,
        };
        let streams = names.into_iter().zip(trips);
        Ok(Setting {
            name: name.to_owned(),
            streams: streams
                .map(|(name, pings)| Stream { name, pings })
                .collect(),
        })
    }

    fn scene_here(&self, both: &Both, scene: &Scene<'_>) -> Result<Vec<Trips>, Error> {
        let queues = (both, self.seed);
        let mut stage = Stage::new(&self.link, queues, scene.beside.tunnelled, &self.stop)?;
        let begin = Instant::now() + Duration::from_millis(50);
        let from = begin + self.settle();
        let end = from + Duration::from_secs(self.seconds) + DRAIN;
        stage.load(scene.load, BULK_CONNECTIONS, (begin, end))?;
        if scene.beside.bulk_of_b {
            stage.bulk_of_b((begin, end))?;
        }
        let target = |name: &str, to, tos, size| Target {
            name: name.to_owned(),
            to,
            tos,
            size,
        };
        for (number, &(to, rate_bps)) in scene.beside.floods.iter().enumerate() {
            let interval = u64::from(FULL_PING + 42) * 8 * 1_000_000_000 / rate_bps.max(1);
            let whole = self.settle().as_secs() + self.seconds;
            stage.ping_flood(Pings {
                targets: vec![target(&format!("flood {number}"), to, 0, FULL_PING)],
                interval: base::Duration::from_nanos(interval),
                count: whole * 1_000_000_000 / interval.max(1),
                wait: base::Duration::from_millis(100),
            })?;
        }
        self.settle_until(from)?;
        let targets = scene.targets.iter();
        let targets = targets.map(|&(name, to, tos)| target(name, to, tos, 56));
        // SFQ queues more than the modem does.
        let wait = self.wait(Duration::from_secs(1));
        let pinger = stage.pings(self.pings(targets.collect(), wait))?;
        let trips = join(pinger)?;
        stage.finish()?;
        Ok(trips)
    }
}
