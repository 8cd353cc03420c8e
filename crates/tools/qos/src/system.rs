//! The state of an interface in Linux: whether it exists and is up, its speed, its MTU, its addresses.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use reactor::netlink::Netlink;
use reactor::port::Link;

/// The known state of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interface {
    /// The interface index: two names may mean the same interface.
    pub(super) index: u32,
    /// Bits per second, if the driver reports it.
    pub(super) speed_bps: Option<u64>,
    /// MTU: the longest IP packet in bytes.
    pub(super) mtu: u32,
    pub(super) is_up: bool,
    /// The bridge or bond that the interface belongs to.
    pub(super) master: Option<String>,
    /// An address of the interface for whose family the kernel forwards packets from the interface.
    pub(super) forwarding: Option<IpAddr>,
}

/// Maximum length of an interface name in bytes.
const NAME_MAX: usize = 15;

/// Whether `name` is a valid interface name: never a path, never a command option.
pub(super) fn is_name(name: &str) -> bool {
    let is_plain = |char: char| !char.is_whitespace() && char != '/' && !char.is_control();
    !name.is_empty()
        && name.len() <= NAME_MAX
        && !name.starts_with(['-', '.'])
        && name.chars().all(is_plain)
}

/// The interface `name` in this process's network namespace; `None` if there is none.
pub(super) fn interface(name: &str) -> Option<Interface> {
    let link = is_name(name).then(|| Link::of(name).ok()).flatten()?;
    let place = place_of(name, &link);
    let place = place.as_deref();
    let read = |file: &str| std::fs::read_to_string(place?.join(file)).ok();
    // The kernel uses "-1" and 4294967295 for an unknown speed.
    let speed = read("speed").and_then(|speed| speed.trim().parse::<i64>().ok());
    let mbit = speed.filter(|speed| (1..4_294_967_295).contains(speed));
    let master = place.and_then(|place| std::fs::read_link(place.join("master")).ok());
    let master = master.and_then(|master| Some(master.file_name()?.to_str()?.to_owned()));
    Some(Interface {
        index: link.index,
        speed_bps: mbit
            .and_then(|mbit| u64::try_from(mbit).ok())
            .map(|mbit| mbit * 1_000_000),
        mtu: link.mtu,
        is_up: link.is_up,
        master,
        forwarding: forwarding(name, link.index),
    })
}

/// The first address of an interface with which the kernel acts as a router. Link-local addresses are not counted:
/// interfaces get one by themselves, and no packet to them is forwarded.
fn forwarding(name: &str, index: u32) -> Option<IpAddr> {
    let addresses = Netlink::open().ok()?.addresses(index).ok()?;
    let is_on = |family: &str| {
        let place = Path::new("/proc/sys/net").join(family).join("conf");
        let text = std::fs::read_to_string(place.join(name).join("forwarding"));
        text.is_ok_and(|text| text.trim() != "0")
    };
    let routes = |address: &IpAddr| match address {
        IpAddr::V4(_) => is_on("ipv4"),
        IpAddr::V6(address) => !address.is_unicast_link_local() && is_on("ipv6"),
    };
    addresses
        .into_iter()
        .map(|(address, _)| address)
        .find(routes)
}

/// The interface's directory in `/sys`; `None` if `/sys` shows another network namespace.
fn place_of(name: &str, link: &Link) -> Option<PathBuf> {
    let place = Path::new("/sys/class/net").join(name);
    let number = |file: &str| -> Option<u32> {
        let text = std::fs::read_to_string(place.join(file)).ok()?;
        text.trim().parse().ok()
    };
    let is_it = number("ifindex") == Some(link.index) && number("mtu") == Some(link.mtu);
    is_it.then_some(place)
}
