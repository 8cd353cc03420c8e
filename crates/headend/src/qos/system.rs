//! What Linux says of an interface: whether it is there, its speed and its longest packet.

use std::path::PathBuf;

/// What is known of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interface {
    /// Bits per second, where the driver knows.
    pub(super) speed_bps: Option<u64>,
    /// Octets of the longest IP packet.
    pub(super) mtu: Option<u32>,
    pub(super) is_up: bool,
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

/// The interface `name`; `None`: there is none.
pub(super) fn interface(name: &str) -> Option<Interface> {
    let place = PathBuf::from("/sys/class/net").join(name);
    if !is_name(name) || !place.join("ifindex").exists() {
        return None;
    }
    let read = |file: &str| std::fs::read_to_string(place.join(file)).ok();
    let number = |file: &str| read(file)?.trim().parse::<i64>().ok();
    // "-1" and 4294967295 stand for what is not known.
    let mbit = number("speed").filter(|speed| (1..4_294_967_295).contains(speed));
    Some(Interface {
        speed_bps: mbit
            .and_then(|mbit| u64::try_from(mbit).ok())
            .map(|mbit| mbit * 1_000_000),
        mtu: number("mtu").and_then(|mtu| u32::try_from(mtu).ok()),
        is_up: read("flags")
            .and_then(|flags| u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).ok())
            .is_some_and(|flags| flags & 1 == 1),
    })
}
