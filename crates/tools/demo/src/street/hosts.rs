//! The hosts of the street: PPPoE clients, each with a MAC address of its own, as clients of one edge on one packet
//! socket. A thread in the street's namespace runs them. The number of a line is the number of its port in the endpoint.
//!
//! Packets to the watched lines leave through a TUN device to the kernel of the street's namespace, and packets from
//! their addresses come from there. So programs use these lines as their own.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use aaa::Prefix;
use anyhow::{Context, Result};
use base::Duration;
use reactor::ether::{EtherOptions, EtherSocket};
use reactor::tun::Tun;
use wire::pppoe::{ETHER_TYPE_DISCOVERY, ETHER_TYPE_SESSION};

use super::echoes::Echoes;
use super::engine::Engine;
use super::place::{Place, WAN};

/// The TUN device of the watched lines.
pub(super) const DEVICE: &str = "lines";
/// The largest packet of a line: Ethernet's 1,500 bytes less the headers of PPPoE and PPP.
pub(super) const MTU: u32 = 1_492;
/// How long one turn waits for frames: commands are read between two turns.
pub(super) const TURN: Duration = Duration::from_millis(5);

/// What a line has.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) ipv4: Option<Ipv4Addr>,
    /// The address that the host formed from its link's prefix.
    pub(super) ipv6: Option<Ipv6Addr>,
    pub(super) delegated: Option<Prefix>,
    /// Seconds from the first PADI of the street until the line had all of these.
    pub(super) up_after_s: Option<f64>,
}

impl Line {
    /// The first address of the delegated prefix after its network's own.
    pub(super) fn home(&self) -> Option<Ipv6Addr> {
        match self.delegated?.address() {
            IpAddr::V6(address) => Some(Ipv6Addr::from_bits(address.to_bits() | 1)),
            IpAddr::V4(_) => None,
        }
    }

    pub(super) fn is_dual_stack(&self) -> bool {
        self.ipv4.is_some() && self.ipv6.is_some() && self.delegated.is_some()
    }
}

/// Packets that arrived at a watched line.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    /// Bytes of IP packets.
    pub(super) octets: AtomicU64,
}

/// State that the hosts' thread shares with the demo.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) lines: Mutex<Vec<Line>>,
    pub(super) up: AtomicU32,
    /// Sessions that ended before the demo ended them, each with the reason.
    pub(super) ended: Mutex<Vec<String>>,
    /// Discovery packets that were sent again.
    pub(super) retransmissions: AtomicU64,
    /// Processor time of the hosts' thread in microseconds.
    pub(super) cpu_us: AtomicU64,
    pub(super) echoes: Mutex<Echoes>,
    /// Number of lines whose packets go to the TUN device.
    pub(super) watched: AtomicU32,
    /// By the order of the watched lines.
    pub(super) arrived: [Arrived; 2],
}

/// Locks, whatever a thread that had the lock did.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the hosts are asked to do.
pub(super) enum Command {
    /// Connect all lines.
    Dial,
    /// Pass the packets of these lines to the TUN device.
    Watch([u16; 2]),
    /// Ping the internet from each line, by IPv4 and by IPv6.
    Echo,
}

/// The hosts' thread. Dropping this ends their sessions.
pub(super) struct Hosts {
    pub(super) shared: Arc<Shared>,
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<io::Result<io::Result<()>>>>,
}

impl Hosts {
    /// Opens the packet socket and the TUN device, and starts the thread.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn start(place: &Place, lines: u16) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        lock(&shared.lines).resize(lines.into(), Line::default());
        let opened = place
            .street
            .run(|| -> Result<_> { Ok((open_socket()?, Tun::open(DEVICE)?)) });
        let (socket, tun) = opened?.context("the street's interfaces")?;
        let mut netlink = place.street.netlink()?;
        netlink.set_mtu(DEVICE, MTU)?;
        netlink.set_up(DEVICE, true)?;
        let (commands, received) = mpsc::channel();
        let mut engine = Engine::new(Arc::clone(&shared), socket, tun)?;
        let work = move || engine.run(&received);
        let thread = place.street.spawn("hosts", work)?;
        Ok(Self {
            shared,
            commands: Some(commands),
            thread: Some(thread),
        })
    }

    /// Connects all lines.
    pub(super) fn dial(&self) {
        self.order(Command::Dial);
    }

    /// Passes the packets of these lines to the TUN device from now on.
    ///
    /// # Errors
    /// The thread has ended.
    pub(super) fn watch(&mut self, lines: [u16; 2]) -> Result<()> {
        self.order(Command::Watch(lines));
        while self.shared.watched.load(Ordering::Acquire) == 0 {
            self.check()?;
            std::thread::sleep(TURN.into());
        }
        Ok(())
    }

    pub(super) fn echo(&self) {
        self.order(Command::Echo);
    }

    fn order(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // It fails only if the thread has ended, which `check` reports.
            let _ = commands.send(command);
        }
    }

    /// Fails if the thread has ended.
    ///
    /// # Errors
    /// Its error.
    pub(super) fn check(&mut self) -> Result<()> {
        if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            self.stop()?;
            anyhow::bail!("the hosts have ended");
        }
        Ok(())
    }

    /// Ends all sessions, and the thread.
    ///
    /// # Errors
    /// Why the thread had ended before.
    pub(super) fn stop(&mut self) -> Result<()> {
        self.commands = None;
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        let ended = thread.join();
        ended
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?
            .context("the hosts' socket")
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            // The error that ended the demo is the one to report.
            let _ = thread.join();
        }
    }
}

/// Opens a socket for the frames of PPPoE on the street's wire, whatever their destination.
fn open_socket() -> Result<EtherSocket> {
    let options = EtherOptions {
        types: vec![ETHER_TYPE_DISCOVERY, ETHER_TYPE_SESSION],
        any_destination: true,
        recv_buffer_bytes: Some(64 << 20),
        send_buffer_bytes: Some(8 << 20),
        ..EtherOptions::default()
    };
    let mut socket = EtherSocket::open(WAN, &options)?;
    socket.bind()?;
    Ok(socket)
}
