//! The state of an interface in Linux: whether it exists and is up, its speed, its MTU.

use std::path::{Path, PathBuf};

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
    })
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
