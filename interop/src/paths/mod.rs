//! Paths of known cause in a guest with a real Linux kernel, and what `headend trace why` says about them.
//!
//! ```text
//! namespace  s          r1             r2             r3          b
//!        sender s0 -- x0  x1 -- y0 (police) y1 -- z0  z1 -- b0 receiver
//! delay, loss            near the            far from the
//!                        sender   rate, queue  sender
//! capture    s0                 y0                           b0
//! ```
//!
//! The sender's kernel reports what limited it (`tcp_info`: `busy_time`, `rwnd_limited`, `sndbuf_limited`), every 20 ms.
//! Virtual time makes a run independent of this machine's load. netem draws its own random numbers, so that two runs of
//! one seed have the same paths but not the same losses.
//!
//! | file | what it has |
//! |---|---|
//! | `generate` | the paths of a seed, with their labels |
//! | `guest` | the script that builds a path, transfers data and captures it at three points |
//! | `traffic` | both ends of a transfer |
//! | `info` | the sender's `tcp_info`, by netlink |
//! | `judge` | compares the verdicts with the labels and with the kernel's own account |

mod generate;
mod guest;
mod info;
mod judge;
mod traffic;

pub(crate) use generate::{Path, fast, of_seed};
pub(crate) use guest::record;
pub(crate) use info::watch;
pub(crate) use judge::{Judged, judge, matrix};
pub(crate) use traffic::{receive, send};
