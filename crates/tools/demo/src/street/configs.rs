//! Configurations of the access concentrator and of the LNS, and their users files.

use std::fmt::Write;

use super::place::{
    ACCESS, BNG, BNG_CORE, BNG_V6, LNS, LNS_CORE, LNS_V6, Networks, OF_BNG, OF_LNS, RADIUS,
};

/// The password of all lines. The files that contain it are readable only by their owner, and are removed with the
/// demo.
pub(super) const PASSWORD: &str = "sesame";
/// The secret between the access concentrator and the RADIUS server.
pub(super) const RADIUS_SECRET: &str = "between us";
/// The port for CoA-Requests.
pub(super) const COA_PORT: u16 = 3799;
/// Names of the users files.
pub(super) const BNG_USERS: &str = "bng-users.toml";
pub(super) const LNS_USERS: &str = "lns-users.toml";

/// Ports in a block, and blocks of an external address: ports below 1,024 are in none.
const BLOCK_PORTS: u32 = 512;
const BLOCKS_PER_ADDRESS: u32 = (65_536 - 1_024) / BLOCK_PORTS;

/// Whether the access concentrator hands this line over. Lines count from 0.
pub(super) fn is_handed_over(line: u16) -> bool {
    line % 2 == 1
}

/// The name that a line authenticates with; the realm decides who has its session.
pub(super) fn name(line: u16) -> String {
    let realm = if is_handed_over(line) {
        "partner.example"
    } else {
        "street.example"
    };
    format!("line{}@{realm}", line + 1)
}

/// The users of one daemon.
pub(super) fn users(lines: u16, handed_over: bool) -> String {
    let mut text = String::new();
    for line in (0..lines).filter(|&line| is_handed_over(line) == handed_over) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "[[user]]\nname = \"{}\"\npassword = \"{PASSWORD}\"",
            name(line)
        );
    }
    text
}

/// The access concentrator and LAC. Its own lines have `rate_bps` down.
pub(super) fn bng(lines: u16, rate_bps: u64) -> String {
    let mut text = format!(
        "[pppoe]\nac_name = \"street\"\n[[pppoe.interface]]\nname = \"{ACCESS}\"\n\
         [lac]\nlisten = [\"{BNG_CORE}:0\"]\n\
         [[tunnel]]\nname = \"partner\"\nlns = [\"{LNS_CORE}\"]\nsecret = \"{PASSWORD}\"\nrealms = [\"partner.example\"]\n\
         [radius]\ndisconnect = \"{BNG}:{COA_PORT}\"\n\
         [[radius.server]]\nauthentication = \"{RADIUS}:1812\"\nsecret = \"{RADIUS_SECRET}\"\n\
         [queue.default]\nrate_down = \"{rate_bps}\"\n\
         [ppp]\naddress = \"{BNG}\"\naddress_v6 = \"{BNG_V6}\"\n"
    );
    text.push_str(&subscribers(&OF_BNG, BNG_USERS, lines));
    text
}

/// The LNS.
pub(super) fn lns(lines: u16) -> String {
    let mut text = format!(
        "[lns]\nlisten = [\"{LNS_CORE}:1701\"]\nsecret = \"{PASSWORD}\"\n\
         [ppp]\naddress = \"{LNS}\"\naddress_v6 = \"{LNS_V6}\"\n"
    );
    text.push_str(&subscribers(&OF_LNS, LNS_USERS, lines));
    text
}

/// What both give to their subscribers: addresses, prefixes, and a translation.
fn subscribers(networks: &Networks, users: &str, lines: u16) -> String {
    let Networks {
        external,
        inside: (inside, inside_length),
        links: (links, links_length),
        homes: (homes, homes_length),
        ..
    } = networks;
    let external_length = external_length(lines);
    format!(
        "[users]\nfile = \"{users}\"\n\
         [[pool]]\nname = \"inside\"\nranges = [\"{inside}/{inside_length}\"]\n\
         [[prefix_pool]]\nname = \"links\"\nranges = [\"{links}/{links_length}\"]\nlength = 64\n\
         [[prefix_pool]]\nname = \"homes\"\nranges = [\"{homes}/{homes_length}\"]\nlength = 56\n\
         [ipv6]\nlink_pool = \"links\"\ndelegated_pool = \"homes\"\n\
         [nat]\ninside = [\"{inside}/{inside_length}\"]\nexternal = [\"{external}/{external_length}\"]\nblock_ports = {BLOCK_PORTS}\n\
         [tun]\nname = \"inside\"\n"
    )
}

/// The length of the smallest external network that has two blocks for each line of one daemon.
fn external_length(lines: u16) -> u32 {
    let blocks = 2 * u32::from(lines).div_ceil(2);
    let addresses = blocks.div_ceil(BLOCKS_PER_ADDRESS);
    32 - addresses.next_power_of_two().trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_line_is_a_user_of_the_lns() {
        assert!(users(5, false).contains("name = \"line5@street.example\""));
        assert_eq!(users(5, false).matches("[[user]]").count(), 3);
        assert!(users(5, true).contains("name = \"line4@partner.example\""));
        assert_eq!(users(5, true).matches("[[user]]").count(), 2);
    }

    #[test]
    fn the_external_network_has_two_blocks_for_each_line_and_fits_its_half_of_a_24() {
        for lines in [2, 20, 252, 253, 2_000, super::super::LINES_MAX] {
            let length = external_length(lines);
            let blocks = (1 << (32 - length)) * BLOCKS_PER_ADDRESS;
            assert!(blocks >= u32::from(lines), "{lines}");
            assert!(length >= 25, "{lines}");
        }
        assert_eq!(external_length(2_000), 28);
    }
}
