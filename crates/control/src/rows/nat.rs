//! Rows of the translation of addresses (NAT).

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use serde::{Deserialize, Serialize};

row! {
    /// The translation as a whole.
    #[derive(Serialize)]
    Nat<'a> is "nat/1" as Block {
        /// `dynamic` or `deterministic`.
        mode: &'a str = [text "mode"],
        /// External addresses.
        external_addresses: u64 = [gauge "external addresses"],
        /// Port blocks in all.
        blocks: u32 = [gauge "port blocks"],
        /// Blocks that subscribers have.
        blocks_used: u32 = [gauge "  used"],
        /// Blocks that wait after their use.
        blocks_held: u32 = [gauge "  held"],
        /// Free blocks.
        blocks_free: u32 = [gauge "  free"],
        /// Blocks allocated so far.
        blocks_allocated: u64 = [counter "  allocated so far"],
        /// Subscribers with a place in the translation.
        subscribers: u32 = [gauge "subscribers"],
        /// Mappings now.
        mappings: u32 = [gauge "mappings"],
        /// The most mappings.
        mappings_max: u32 = [gauge "  limit"],
        /// Mappings made so far.
        mappings_made: u64 = [counter "  made so far"],
        /// Connections and remote addresses beyond the first of each mapping.
        sessions: u32 = [gauge "further sessions"],
        /// Forwarded ports.
        forwards: u32 = [gauge "forwarded ports"],
        /// Packets translated from inside to outside.
        outbound: u64 = [counter "packets out"],
        /// Packets translated from outside to inside.
        inbound: u64 = [counter "packets in"],
        /// Packets between two subscribers.
        hairpinned: u64 = [counter "packets between subscribers"],
        /// Packets to destinations that are not translated.
        untouched: u64 = [counter "packets not translated"],
        /// Control connections of FTP that are followed.
        ftp_controls: u32 = [gauge "FTP control connections"],
        /// FTP commands whose address was translated.
        ftp_rewritten: u64 = [counter "  commands translated"],
        /// FTP commands that were left as they were.
        ftp_left: u64 = [counter "  commands left"],
        /// FTP control connections that are not followed, because of a limit.
        ftp_untracked: u64 = [counter "  connections not followed"],
        /// Dropped packets by reason.
        dropped: BTreeMap<&'a str, u64> = [counter "packets dropped"],
        /// The logs.
        #[serde(flatten)]
        log: NatLog<'a> = [flat NatLog],
    }
}

row! {
    /// The logs of the translation.
    #[derive(Serialize)]
    NatLog<'a> is part {
        /// The directory of the store; null: none.
        store: Option<&'a str> = [text "log store"],
        /// Records in the store since the start.
        log_stored: u64 = [counter "  records"],
        /// Records that wait because the store cannot be written.
        log_unstored: u64 = [gauge "  waiting"],
        /// Records that were lost because the store could not be written for too long.
        log_store_lost: u64 = [counter "  lost"],
        /// Events that were lost because the log was too slow.
        log_lost: u64 = [counter "log events lost"],
        /// IPFIX messages sent.
        ipfix_messages: u64 = [counter "IPFIX messages"],
        /// IPFIX messages that could not be sent.
        ipfix_failed: u64 = [counter "  failed"],
        /// Lines sent to the syslog server.
        syslog_lines: u64 = [counter "syslog lines"],
        /// Lines that could not be sent.
        syslog_failed: u64 = [counter "  failed"],
    }
}

row! {
    /// A subscriber that is translated.
    #[derive(Serialize)]
    NatSubscriber<'a> is "nat.subscriber/1" as Table {
        /// The name that it authenticated with.
        name: &'a str = [id text "NAME"],
        /// Its inside address.
        inside: Ipv4Addr = [id text "INSIDE"],
        /// Its external address; null before its first packet.
        external: Option<Ipv4Addr> = [text "EXTERNAL"],
        /// Its port blocks.
        blocks: u16 = [gauge "BLOCKS"],
        /// The most blocks.
        blocks_max: u16 = [gauge "BLOCKS MAX"],
        /// Its mappings.
        mappings: u32 = [gauge "MAPPINGS"],
        /// The most mappings.
        mappings_max: u32 = [gauge "MAPPINGS MAX"],
    }
}

row! {
    /// A forwarded port.
    #[derive(Serialize)]
    NatForward<'a> is "nat.forward/1" as Table {
        /// `tcp` or `udp`.
        protocol: &'a str = [id text "PROTOCOL"],
        /// The external address and port.
        external: SocketAddrV4 = [id text "EXTERNAL"],
        /// The inside address and port.
        inside: SocketAddrV4 = [text "INSIDE"],
        /// The subscriber whose port block has the port; null for a port below the blocks.
        name: Option<&'a str> = [text "NAME"],
        /// Seconds until it ends; null: no end.
        lifetime_s: Option<f64> = [gauge Seconds "LIFETIME"],
    }
}

row! {
    /// Who has, or had, an external port.
    #[derive(Clone, Serialize, Deserialize)]
    NatWho is "nat.who/1" as Own {
        /// The external address and port.
        external: SocketAddrV4 = [id text],
        /// `block`, `forward` (a forwarded port), `share` (deterministic mode), or null: nobody.
        by: Option<String> = [text],
        /// The name that the subscriber authenticated with; null if it is not known.
        name: Option<String> = [text],
        /// Its inside address.
        inside: Option<Ipv4Addr> = [text],
        /// `tcp` or `udp` if only that port is forwarded; null: all protocols.
        protocol: Option<String> = [text],
        /// The first external port that it has.
        first_port: Option<u16> = [gauge],
        /// The last one.
        last_port: Option<u16> = [gauge],
        /// The time of the question, in seconds since 1970.
        at_s: f64 = [gauge Seconds],
        /// Since when it has the port, in seconds since 1970; null if that is not recorded.
        since_s: Option<f64> = [gauge Seconds],
        /// The directory of the log; null: there is none, or it is not known here.
        store: Option<String> = [text],
    }
}
