//! Configurations of the demo's daemons, and the users file.

use std::fmt::Write;
use std::net::Ipv4Addr;

/// The LNS's address within the tunnels.
pub(super) const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);

/// The first address of the pool's network.
const POOL: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 0);

/// The users' password. Files that contain it are readable only by their owner, and are removed
/// with the demo.
const PASSWORD: &str = "sesame";

/// The users file's name.
pub(super) const USERS: &str = "users.toml";

/// Limit of subscribers that the LNS tests by Echo-Request per second.
const ECHOES_PER_S: u32 = 5_000;

/// Interval in seconds between two Echo-Requests to each of that many subscribers.
pub(super) fn echo_interval_s(subscribers: u32) -> u32 {
    subscribers.div_ceil(ECHOES_PER_S).max(2)
}

/// Configurations of LNS and LAC for tunnels without subscribers.
pub(super) fn bare([lns, lac]: [Ipv4Addr; 2]) -> [String; 2] {
    [("lns", lns), ("lac", lac)].map(|(role, at)| format!("[{role}]\nlisten = [\"{at}:0\"]\n"))
}

/// Configurations for tunnels with subscribers in them, with or without TUN devices.
pub(super) fn with_subscribers(
    addresses: [Ipv4Addr; 2],
    subscribers: u32,
    devices: bool,
) -> [String; 2] {
    let [mut lns, mut lac] = bare(addresses);
    let echo = echo_interval_s(subscribers);
    let length = prefix_length(subscribers);
    // Writing to a string cannot fail.
    let _ = write!(
        lns,
        "[ppp]\naddress = \"{GATEWAY}\"\nipv6 = false\necho_interval_s = {echo}\nsubscribers = {subscribers}\n\
         [[pool]]\nname = \"home\"\nranges = [\"{POOL}/{length}\"]\n\
         [users]\nfile = \"{USERS}\"\n"
    );
    let _ = write!(
        lac,
        "[client]\nname = \"user{{n}}\"\nsecret = \"{PASSWORD}\"\n"
    );
    if devices {
        lns.push_str("[tun]\nname = \"inside\"\n");
        let _ = write!(
            lac,
            "[tun]\nname = \"outside\"\nroutes = [\"{GATEWAY}/32\"]\n"
        );
    }
    [lns, lac]
}

/// Prefix length of the smallest network with that many usable addresses; a pool leaves out two of
/// every 256.
fn prefix_length(subscribers: u32) -> u32 {
    let addresses = subscribers + subscribers / 64 + 4;
    32 - addresses.next_power_of_two().trailing_zeros()
}

/// The users file.
pub(super) fn users(subscribers: u32) -> String {
    let mut text = String::new();
    for n in 1..=subscribers {
        let _ = writeln!(
            text,
            "[[user]]\nname = \"user{n}\"\npassword = \"{PASSWORD}\""
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pool_has_an_address_for_everybody() {
        assert_eq!([1, 4, 5, 240, 256].map(prefix_length), [29, 29, 28, 24, 23]);
        assert_eq!(prefix_length(250_000), 14);
    }

    #[test]
    fn many_are_asked_less_often() {
        assert_eq!([1, 10_000, 100_000].map(echo_interval_s), [2, 2, 20]);
    }
}
