//! Rows of tunnels, sessions, peers, and counters.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::Serialize;

use super::text;

row! {
    /// A live tunnel.
    #[derive(Serialize)]
    Tunnel<'a> is "tunnel/1" as Table {
        /// Our tunnel id.
        id: u32 = [id "ID"],
        /// The peer's tunnel id; 0 until it is known.
        remote_id: u32 = [id "REMOTE"],
        /// L2TP version, 2 or 3.
        version: u8 = [id "V"],
        /// State name in the RFC, or `closing` while our StopCCN is not yet acknowledged.
        #[serde(serialize_with = "text")]
        state: &'a dyn Display = [text "STATE"],
        /// `lac` if we originated it, else `lns`.
        role: &'a str = [text "ROLE"],
        /// The peer's address and port.
        peer: SocketAddr = [id text "PEER"],
        /// Our address, if it is known.
        local: Option<IpAddr> = [text],
        /// The peer's Host Name.
        host_name: &'a str = [text "HOST"],
        /// The id that `config_ids` assigned to it; null if that is off.
        config_id: Option<u32> = [id],
        /// Number of sessions.
        sessions: u32 = [gauge "SESSIONS"],
        /// Time since it was created.
        age_s: f64 = [gauge Seconds],
        /// Time since it was established.
        up_s: Option<f64> = [gauge Seconds "UPTIME"],
        /// The peer's receive window.
        window: u16 = [gauge],
        /// Congestion window.
        cwnd: u16 = [gauge],
        /// Messages sent and not yet acknowledged.
        outstanding: u16 = [gauge],
        /// Control messages received.
        rx: u32 = [counter],
        /// Control messages sent.
        tx: u32 = [counter],
        /// Control messages sent again.
        retransmissions: u32 = [counter "RETRANSMITS"],
        /// Control messages received again.
        duplicates: u32 = [counter],
    }
}

row! {
    /// A live session.
    #[derive(Serialize)]
    Session<'a> is "session/1" as Table {
        /// Our session id.
        id: u32 = [id "ID"],
        /// The peer's session id; 0 until it is known.
        remote_id: u32 = [id "REMOTE"],
        /// Our id of its tunnel.
        tunnel: u32 = [id "TUNNEL"],
        /// L2TP version, 2 or 3.
        version: u8 = [id "V"],
        /// `lac` or `lns`, and who placed the call.
        #[serde(serialize_with = "text")]
        role: &'a dyn Display = [text "ROLE"],
        /// State name in the RFC.
        #[serde(serialize_with = "text")]
        state: &'a dyn Display = [text "STATE"],
        /// Type of the pseudowire.
        pseudowire: &'a str = [text "PSEUDOWIRE"],
        /// Time since it was created.
        age_s: f64 = [gauge Seconds],
        /// Time since it was established.
        up_s: Option<f64> = [gauge Seconds "UPTIME"],
        /// The other half of a switched session, as its access names it; null: the session is not switched.
        other: Option<String> = [text],
        /// Called Number.
        called_number: &'a str = [text "CALLED"],
        /// Name of the subscriber, if the session's PPP ends here.
        subscriber: Option<&'a str> = [text "SUBSCRIBER"],
        /// State of the subscriber.
        phase: Option<&'a str> = [text "PHASE"],
        /// The subscriber's address.
        address: Option<Ipv4Addr> = [text "ADDRESS"],
        /// IP bytes from the subscriber; null if the session's PPP does not end here.
        octets_in: Option<u64> = [counter Bytes "IN"],
        /// IP bytes to the subscriber.
        octets_out: Option<u64> = [counter Bytes "OUT"],
    }
}

row! {
    /// A peer address.
    #[derive(Serialize)]
    Peer<'a> is "peer/1" as Table {
        /// The address.
        address: IpAddr = [id text "ADDRESS"],
        /// Tunnels with this peer.
        tunnels: u32 = [gauge "TUNNELS"],
        /// Tunnels that were opened with this peer so far.
        opened_total: u64 = [counter "OPENED"],
    }
}

row! {
    /// A tunnel or session that ended.
    #[derive(Serialize)]
    Ended<'a> is "ended/1" as Table {
        /// Our tunnel id.
        tunnel: u32 = [id "TUNNEL"],
        /// Our session id; null if the row is about the tunnel.
        session: Option<u32> = [id "SESSION"],
        /// L2TP version, 2 or 3.
        version: u8 = [id "V"],
        /// The peer's address and port.
        peer: Option<SocketAddr> = [text "PEER"],
        /// Time since the end.
        ended_s_ago: f64 = [gauge Seconds "AGO"],
        /// Why it ended.
        #[serde(serialize_with = "text")]
        reason: &'a dyn Display = [text "REASON"],
        /// The RFC's result code, sent or received.
        result: Option<u16> = [id],
        /// The RFC's error code, sent or received.
        error: Option<u16> = [id],
    }
}

row! {
    /// One counter.
    #[derive(Serialize)]
    Counter<'a> is "counter/1" as Table {
        /// Its name.
        #[serde(serialize_with = "text")]
        name: &'a dyn Display = [id text "COUNTER"],
        /// Its value.
        value: u64 = [counter "VALUE"],
    }
}

row! {
    /// An Ethernet interface of PPPoE.
    #[derive(Serialize)]
    PppoeInterface<'a> is "pppoe.interface/1" as Table {
        /// Its name.
        interface: &'a str = [id text "INTERFACE"],
        /// `up`, or `lost` while it is down or absent.
        state: &'a str = [text "STATE"],
        /// `server` if it has subscribers, `client` if our client alone uses it.
        role: &'a str = [text "ROLE"],
        /// Its MAC address; null while it is lost.
        mac: Option<String> = [text "MAC"],
        /// Its MTU.
        mtu: u32 = [gauge Bytes "MTU"],
        /// The VLANs that are served.
        vlans: String = [text "VLANS"],
        /// Its sessions, those being set up included.
        sessions: u32 = [gauge "SESSIONS"],
        /// Frames received.
        received: u64 = [counter "RECEIVED"],
        /// Frames sent.
        sent: u64 = [counter "SENT"],
        /// Frames that the kernel dropped because they were not read in time.
        missed: u64 = [counter "MISSED"],
        /// Frames that the kernel refused to send.
        refused: u64 = [counter "REFUSED"],
        /// Frames to send that found no room, or while the interface was lost.
        dropped: u64 = [counter "DROPPED"],
        /// Discovery packets of VLANs that are not served.
        other_vlan: u64 = [counter "OTHER VLAN"],
        /// Frames that were dropped because they are longer than the interface's MTU: the kernel joined several (GRO).
        #[serde(default)]
        oversized: u64 = [counter "OVERSIZED"],
        /// Frames from the interface's own MAC address, which another station has too, or which a loop returns.
        #[serde(default)]
        own_mac: u64 = [counter "OWN MAC"],
        /// Frames that are no valid PPPoE.
        malformed: u64 = [counter "MALFORMED"],
    }
}
