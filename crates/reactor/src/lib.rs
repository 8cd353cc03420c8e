//! The event core: readiness, datagrams in batches, signals, the real clock, and counters of the cost of each.
//!
//! Only this crate has unsafe code, and all of it is in `sys`. It knows no protocol: it passes bytes and readiness to
//! the owner of the loop.
//!
//! One turn of a loop: [`Reactor::wait`] returns the turn's `now`. [`Reactor::next_ready`] yields the ready
//! descriptors, except those removed meanwhile. The handler reads with [`UdpSocket::recv`], gives the bytes to a
//! protocol machine, collects its answers in a [`SendBatch`] and sends them with [`UdpSocket::send`].
//! [`Reactor::lap`] books the time on the handler. A handler with much to do stops when its [`Slice`] is over. Start
//! with [`Reactor`].
//!
//! Beside the loop: [`timed`] sockets, whose packets the kernel timestamps; a [`port::Port`], which receives all
//! frames of an interface, and an [`ether::EtherSocket`], which receives those of a few protocols; a
//! [`capture::Capture`], which only watches an interface; [`namespace`]s with [`netlink`] and [`tun`] devices, for experiments; [`urgency`], for
//! threads that must wake up on time; eBPF programs ([`bpf`]); [`disk`] files, whose calls tests let fail; notifications to the service
//! [`manager`].
//!
//! Left out: several queues of one interface, and kernel bypass.
#![deny(unsafe_code)]

mod apart;
pub mod bare;
pub mod bpf;
mod buffers;
mod capabilities;
pub mod capture;
pub mod clock;
mod datagram;
mod descriptors;
pub mod disk;
pub mod ether;
mod events;
pub mod faults;
pub mod limits;
pub mod manager;
pub mod memory;
pub mod namespace;
pub mod netlink;
mod poller;
pub mod port;
pub mod prefetch;
pub mod probe;
mod pulse;
mod signal;
mod slices;
mod stats;
#[allow(unsafe_code)]
mod sys;
mod syscalls;
pub mod tcp;
pub mod timed;
mod token;
pub mod tun;
pub mod unix;
pub mod urgency;
pub mod usage;
mod waker;

pub use apart::spawn_apart;
pub use buffers::{BufferReport, BufferSide};
pub use capabilities::{
    drop_capabilities, drop_capabilities_but_net_admin, drop_capabilities_but_to_read_processes,
};
pub use datagram::{
    Instruction, Received, RecvBatch, SendBatch, SendOutcome, SocketStats, UdpOptions, UdpSocket,
};
pub use descriptors::{DescriptorInfo, StoreKind};
pub use events::{AddError, Reactor, Ready};
pub use poller::PollerKind;
pub use pulse::{Pulse, Running};
pub use signal::{Signal, Signals, StatusRequests};
pub use slices::{Overrun, Slice};
pub use stats::{HandlerId, HandlerStats, Lateness, WaitStats};
pub use syscalls::{Call, SysCounts};
pub use token::{Interest, Readiness, Token, UnknownName};
pub use waker::Waker;
