//! The state of an interface in Linux: whether it exists and is up, its speed, its MTU.

use std::path::{Path, PathBuf};

use reactor::port::Link;

/// What is known of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interface {
    /// Its number: two names may be of one interface.
    pub(super) index: u32,
    /// Bits per second, where the driver knows.
    pub(super) speed_bps: Option<u64>,
    /// Octets of the longest IP packet.
    pub(super) mtu: u32,
    pub(super) is_up: bool,
    /// The bridge or bond that it is part of.
    pub(super) master: Option<String>,
}

/// Longest name of an interface in octets.
const NAME_MAX: usize = 15;

/// Whether `name` can be that of an interface at all: never a path, never an option of a command.
pub(super) fn is_name(name: &str) -> bool {
    let is_plain = |char: char| !char.is_whitespace() && char != '/' && !char.is_control();
    !name.is_empty()
        && name.len() <= NAME_MAX
        && !name.starts_with(['-', '.'])
        && name.chars().all(is_plain)
}

/// The interface `name` of this process's network namespace; `None`: there is none.
pub(super) fn interface(name: &str) -> Option<Interface> {
    let link = is_name(name).then(|| Link::of(name).ok()).flatten()?;
    let place = place_of(name, &link);
    let place = place.as_deref();
    let read = |file: &str| std::fs::read_to_string(place?.join(file)).ok();
    // "-1" and 4294967295 stand for what is not known.
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

/// Where `/sys` has the interface; `None` where it shows those of another network namespace.
fn place_of(name: &str, link: &Link) -> Option<PathBuf> {
    let place = Path::new("/sys/class/net").join(name);
    let number = |file: &str| -> Option<u32> {
        let text = std::fs::read_to_string(place.join(file)).ok()?;
        text.trim().parse().ok()
    };
    let is_it = number("ifindex") == Some(link.index) && number("mtu") == Some(link.mtu);
    is_it.then_some(place)
}
