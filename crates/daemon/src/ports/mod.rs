//! The Ethernet interfaces with PPPoE subscribers, and those that our PPPoE clients use.
//!
//! A [`Port`] is a packet socket of one interface. `pppoe::Route::port` holds its number. The socket outlives its
//! interface: after the interface went down or vanished, the port is bound again, which needs no privilege. `ethernet`
//! reads and writes Ethernet's header and VLAN tags, `traffic` the frames.

mod ethernet;
mod traffic;

pub(super) use ethernet::append_frame;

use std::io;
use std::os::fd::AsFd;

use reactor::ether::{EtherOptions, EtherRecv, EtherSend, EtherSocket, EtherStats, Spread};
use reactor::{Interest, Reactor, Token};
use wire::pppoe::{ETHER_TYPE_DISCOVERY, ETHER_TYPE_SESSION, Mac};

use super::source::Source;
use crate::config::{Event, PppoeInterface, VlanRange};

/// Limit of frames queued on a port.
const QUEUE: usize = 2048;

/// Where SESSION_ID is, in bytes behind the EtherType.
const SESSION_ID: u8 = 2;

/// An interface.
struct Port {
    socket: EtherSocket,
    vlans: Vec<VlanRange>,
    /// Whether our clients alone use it.
    is_client: bool,
    /// Whether the socket is bound.
    is_bound: bool,
    token: Option<Token>,
    out: EtherSend,
    is_blocked: bool,
    /// The tag protocol of the outer one of two tags, as in the latest frame that had two.
    outer_tag: u16,
    counts: PortCounts,
}

/// Frames that a port ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PortCounts {
    /// Of VLANs that are not served.
    pub(crate) other_vlan: u64,
    /// With a wrong EtherType or destination for their code, or with more than two tags.
    pub(crate) malformed: u64,
    /// From the interface's own MAC address: another station has it too, or the network has a loop.
    pub(crate) own_mac: u64,
    /// With a PPPoE packet that is longer than the interface's MTU: the kernel joined several (GRO).
    pub(crate) oversized: u64,
    /// Frames to send that found no room, or whose port was not bound.
    pub(crate) dropped: u64,
}

/// A change of an interface.
#[derive(Debug)]
pub(super) enum Found {
    /// It is down, is gone or has another MAC address.
    Lost(io::Error),
    /// It has another MTU.
    Mtu,
    /// It is up, and its port is not bound.
    Returned,
}

/// All interfaces of one thread.
pub(super) struct Ports {
    ports: Vec<Port>,
    received: EtherRecv,
    blocked: usize,
    /// A port that cannot be watched any more; see [`Ports::take_failed`].
    failed: Option<(u32, io::Error)>,
    /// Whether an interface may have changed since the last check.
    is_doubtful: bool,
}

/// A port as `show` lists it.
pub(crate) struct PortView<'a> {
    pub(crate) name: &'a str,
    pub(crate) mac: Mac,
    pub(crate) mtu: u32,
    pub(crate) is_bound: bool,
    pub(crate) vlans: &'a [VlanRange],
    pub(crate) is_client: bool,
    pub(crate) stats: EtherStats,
    pub(crate) counts: PortCounts,
}

impl Ports {
    fn with(batch: usize) -> Self {
        Self {
            ports: Vec::new(),
            received: EtherRecv::new(batch),
            blocked: 0,
            failed: None,
            is_doubtful: false,
        }
    }

    /// Opens a socket for each interface, for the thread `part`. None of them is bound yet.
    ///
    /// # Errors
    /// The privilege is missing, or the kernel's error.
    pub(super) fn open(
        interfaces: &[PppoeInterface],
        event: &Event,
        part: u16,
    ) -> anyhow::Result<Self> {
        let mut ports = Self::with(event.batch);
        for one in interfaces {
            let spread = (event.shards > 1).then_some(Spread {
                kind: ETHER_TYPE_SESSION,
                offset: SESSION_ID,
                parts: event.shards,
                part,
            });
            let options = EtherOptions {
                types: vec![ETHER_TYPE_DISCOVERY, ETHER_TYPE_SESSION],
                spread,
                any_destination: false,
                recv_buffer_bytes: Some(event.receive_buffer_bytes),
                send_buffer_bytes: Some(event.send_buffer_bytes),
            };
            let socket = EtherSocket::open(&one.name, &options)?;
            ports.ports.push(Port {
                socket,
                vlans: one.vlans.clone(),
                is_client: !one.port.server,
                is_bound: false,
                token: None,
                out: EtherSend::new(QUEUE),
                is_blocked: false,
                outer_tag: ethernet::TAG_OUTER,
                counts: PortCounts::default(),
            });
        }
        Ok(ports)
    }

    /// Number of interfaces.
    pub(super) fn len(&self) -> usize {
        self.ports.len()
    }

    /// A port as `show` lists it.
    pub(super) fn view(&self, number: usize) -> Option<PortView<'_>> {
        let port = self.ports.get(number)?;
        Some(PortView {
            name: port.socket.name(),
            mac: Mac(port.socket.mac()),
            mtu: port.socket.mtu(),
            is_bound: port.is_bound,
            vlans: &port.vlans,
            is_client: port.is_client,
            stats: port.socket.stats(),
            counts: port.counts,
        })
    }

    /// An interface's name.
    pub(super) fn name(&self, number: u32) -> Option<&str> {
        let port = self.ports.get(number as usize)?;
        Some(port.socket.name())
    }

    /// The number of the interface with this name.
    pub(super) fn number(&self, name: &str) -> Option<u16> {
        let found = self
            .ports
            .iter()
            .position(|port| port.socket.name() == name);
        found.map(|number| number as u16)
    }

    /// An interface's MTU in bytes, if it is bound.
    pub(super) fn mtu(&self, number: u32) -> Option<u32> {
        let port = self.ports.get(number as usize)?;
        port.is_bound.then(|| port.socket.mtu())
    }

    /// Serves these VLANs. Returns whether they differ from those before.
    pub(super) fn set_vlans(&mut self, number: u16, vlans: &[VlanRange]) -> bool {
        let Some(port) = self.ports.get_mut(usize::from(number)) else {
            return false;
        };
        let differ = port.vlans != vlans;
        port.vlans = vlans.to_vec();
        differ
    }

    /// Binds a port to its interface, and watches it.
    ///
    /// # Errors
    /// The interface is not there, is down or is no Ethernet interface.
    pub(super) fn bind(&mut self, number: u32, reactor: &mut Reactor) -> io::Result<()> {
        let Some(port) = self.ports.get_mut(number as usize) else {
            return Ok(());
        };
        port.socket.bind().map_err(io::Error::other)?;
        port.is_bound = true;
        if port.token.is_none() {
            let source = Source::Port(number).to_bits();
            let added = reactor.add(port.socket.as_fd(), "pppoe", source, Interest::READ);
            port.token = Some(added.map_err(io::Error::other)?);
        }
        Ok(())
    }

    /// An interface may have changed.
    pub(super) fn doubt(&mut self) {
        self.is_doubtful = !self.ports.is_empty();
    }

    /// Compares each interface with what its port is bound to, if one may have changed. Returns the changes.
    pub(super) fn check(&mut self) -> Vec<(u32, Found)> {
        if !core::mem::take(&mut self.is_doubtful) {
            return Vec::new();
        }
        let mut changed = Vec::new();
        for (number, port) in (0..).zip(&mut self.ports) {
            if !port.is_bound {
                if port.socket.is_ready() {
                    changed.push((number, Found::Returned));
                }
                continue;
            }
            let before = port.socket.mtu();
            match port.socket.check() {
                Err(error) => changed.push((number, Found::Lost(io::Error::other(error)))),
                Ok(()) if port.socket.mtu() != before => changed.push((number, Found::Mtu)),
                Ok(()) => {}
            }
        }
        changed
    }

    /// Whether a port's interface is up.
    pub(super) fn is_ready(&self, number: u32) -> bool {
        let port = self.ports.get(number as usize);
        port.is_some_and(|port| port.socket.is_ready())
    }

    /// Stops to use a port whose interface failed. Its number and its socket stay.
    pub(super) fn lose(&mut self, number: u32, reactor: &mut Reactor) {
        let Some(port) = self.ports.get_mut(number as usize) else {
            return;
        };
        port.is_bound = false;
        port.counts.dropped += port.out.clear() as u64;
        self.blocked -= usize::from(core::mem::take(&mut port.is_blocked));
        if let Some(token) = port.token.take() {
            reactor.remove(token);
        }
    }
}
