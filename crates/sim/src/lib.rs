//! Worlds of protocol machines on a virtual clock, joined by seeded links that
//! lose, delay, duplicate and reorder.
//!
//! A [`World`] owns machines (anything with `Input = Datagram` and `Transmit = Route`, see [`DatagramMachine`]) and
//! jumps from one delivery or deadline to the next, so an idle node costs nothing. All randomness comes from one
//! seed: the same seed gives a bit-identical run. A world dropped by a panic prints its seed, its virtual time, its
//! nodes and the last datagrams; with `HEADEND_SIM_PCAP=FILE` it also writes them to a capture file.
//!
//! A [`Pair`] is two machines over one link; a [`Probe`] is a peer that the test plays by hand; [`seeds`] runs a
//! scenario many times. A [`CrashDisk`] loses what was not synced. Start with [`World`].
//!
//! Left out: fragmentation and MTU, ICMP errors, corruption (a UDP checksum would
//! turn it into loss).
//!
//! ```
//! use base::Duration;
//! use sim::{Link, Probe, World, addr};
//!
//! // The same scenario over four seeds; HEADEND_SIM_SEED=3 would run seed 3 alone.
//! sim::seeds(4, |seed| {
//!     let mut world = World::new(seed);
//!     world.set_default_link(Link { jitter: Duration::from_millis(5), ..Link::CLEAN });
//!     let lac = world.add("lac", Probe::default(), ["192.0.2.1:1701"]);
//!     let lns = world.add("lns", Probe::default(), ["192.0.2.2:1701", "198.51.100.0/24:1701"]);
//!     let lns_address = world.address(lns);
//!
//!     // Commands go in through `with`; what the machine sends leaves at once.
//!     world.with(lac, |lac, _now| lac.send(lns_address, b"hello"));
//!     let heard = world.wait_event(lns, Duration::from_secs(1), |e| e.bytes == b"hello");
//!     assert_eq!(heard.expect("it arrives").from(), world.address(lac));
//!
//!     // Links change while the world runs.
//!     world.cut(lac, lns);
//!     world.with(lac, |lac, _now| lac.send(addr("198.51.100.7:1701"), b"anyone?"));
//!     assert!(world.run_until_idle(Duration::from_secs(60)));
//!     assert_eq!(world.link_stats(lac, lns).cut, 1);
//! });
//! ```
#![forbid(unsafe_code)]

mod bind;
mod capture;
mod disk;
mod link;
mod log;
mod node;
mod pair;
mod probe;
mod recording;
mod replay;
mod rng;
mod seeds;
mod world;

pub use bind::{Bind, BindError, addr};
pub use disk::{Crash, CrashDisk, CrashFile};
pub use link::{Link, LinkStats, Verdict};
pub use log::{Fate, Record};
pub use node::{DatagramMachine, NodeHandle, NodeId};
pub use pair::{ADDRESS_A, ADDRESS_B, Pair};
pub use probe::{Heard, Probe};
pub use recording::{Entry, Recording, RecordingError};
pub use replay::{Call, Replayed};
pub use rng::Rng;
pub use seeds::seeds;
pub use world::{Lent, World};
