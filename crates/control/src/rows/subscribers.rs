//! Rows of subscribers, of address pools, and of captures.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::Serialize;

use super::text;

row! {
    /// A subscriber in a list.
    #[derive(Serialize)]
    Subscriber<'a> is "subscriber/1" as Table {
        /// The name that it authenticated with.
        name: &'a str = [id text "NAME"],
        /// `link`, `asking`, `networks`, `up`, `ending`.
        state: &'a str = [text "STATE"],
        /// `network` if it connects to us, `client` if we are the PPP client.
        role: &'a str = [text],
        /// Its address.
        address: Option<Ipv4Addr> = [text "ADDRESS"],
        /// The IPv6 prefix of its link; for a client of ours, null.
        prefix: Option<String> = [text],
        /// The IPv6 prefix delegated to it, or to us if we are the client.
        delegated: Option<String> = [text],
        /// The IPv6 address that it leased by DHCPv6, or that we formed if we are the client.
        address_v6: Option<IpAddr> = [text],
        /// Its interface identifier, or ours if we are the client. Null while IPv6CP is not open.
        interface_id: Option<String> = [text],
        /// State of IPv6CP as in RFC 1661, section 4.2; null if it has not started.
        ipv6cp: Option<&'static str> = [text],
        /// DHCPv6: `leased` or `none`; for a client of ours, the state of its exchange. Null while IPv6CP is not open.
        dhcpv6: Option<&'static str> = [text],
        /// `l2tp` or `pppoe`.
        access: &'a str = [text],
        /// Our id of its tunnel; 0: none.
        tunnel: u32 = [id "TUNNEL"],
        /// Our id of its session.
        session: u32 = [id "SESSION"],
        /// Address and port of the tunnel's peer, or interface, VLANs and MAC address of the host.
        peer: Option<String> = [text "PEER"],
        /// Address and port of the LNS that has its session, or is called; null: it ends here.
        lns: Option<String> = [text],
        /// Its filter.
        filter: Option<&'a str> = [text "FILTER"],
        /// Its rate down; null: no limit of its own.
        rate_down_bps: Option<u64> = [gauge PerSecond Bits "RATE DOWN"],
        /// Its rate up; null: no limit of its own.
        rate_up_bps: Option<u64> = [gauge PerSecond Bits "RATE UP"],
        /// The template of its queues; null: it has none.
        template: Option<&'a str> = [text "TEMPLATE"],
        /// Its shared link.
        link: Option<&'a str> = [text "LINK"],
        /// Time since its session was established.
        age_s: f64 = [gauge Seconds],
        /// Time since its first network protocol opened.
        up_s: Option<f64> = [gauge Seconds "UPTIME"],
        /// Round trip of the last LCP echo; null: none was answered.
        echo_rtt_us: Option<u32> = [gauge Micros],
        /// Its traffic.
        #[serde(flatten)]
        traffic: Traffic = [flat Traffic],
    }
}

row! {
    /// IP packets and bytes of a subscriber; `in` is from the subscriber.
    #[derive(Clone, Copy, Serialize)]
    Traffic is part {
        /// Packets from the subscriber.
        packets_in: u64 = [counter "PACKETS IN"],
        /// Bytes from the subscriber.
        octets_in: u64 = [counter Bytes "IN"],
        /// Packets to the subscriber.
        packets_out: u64 = [counter "PACKETS OUT"],
        /// Bytes to the subscriber.
        octets_out: u64 = [counter Bytes "OUT"],
        /// Packets dropped, both directions.
        dropped: u64 = [counter "DROPPED"],
    }
}

row! {
    /// The LNS that a session is handed over to.
    #[derive(Serialize)]
    LnsPart<'a> is part {
        /// Its address and port.
        address: SocketAddr = [id text],
        /// `calling`, or `has it`.
        state: &'a str = [text],
        /// The LNS's name for itself.
        host_name: Option<&'a str> = [text],
        /// Our id of the tunnel to it.
        tunnel: Option<u32> = [id],
        /// Our id of the session to it.
        session: Option<u32> = [id],
        /// The LNS's id of that session.
        remote_session: Option<u32> = [id],
    }
}

row! {
    /// Everything about one subscriber.
    #[derive(Serialize)]
    Detail<'a> is "subscriber.detail/1" as Own {
        /// The name that it authenticated with.
        name: &'a str = [id text],
        /// State, as in `subscriber/1`.
        state: &'a str = [text],
        /// Role, as in `subscriber/1`.
        role: &'a str = [text],
        /// Why we are disconnecting it.
        #[serde(serialize_with = "super::maybe_text")]
        ending: Option<&'a dyn Display> = [text],
        /// Its tunnel.
        tunnel: Option<TunnelPart<'a>> = [part TunnelPart],
        /// Its L2TP session.
        session: Option<SessionPart<'a>> = [part SessionPart],
        /// Its PPPoE session.
        pppoe: Option<PppoePart<'a>> = [part PppoePart],
        /// The LNS that its session is handed over to.
        lns: Option<LnsPart<'a>> = [part LnsPart],
        /// Its PPP link.
        ppp: Ppp = [part Ppp],
        /// IPv4.
        ipv4: Ipv4<'a> = [part Ipv4],
        /// IPv6, if open.
        ipv6: Option<Ipv6> = [part Ipv6],
        /// Largest packet that reaches it without fragmentation; 0 until a network protocol is open.
        mtu: u16 = [gauge Bytes],
        /// Networks behind it.
        routes: Vec<String> = [text],
        /// Those of `routes` that another subscriber holds.
        routes_missing: Vec<String> = [text],
        /// Its filter.
        filter: Option<&'a str> = [text],
        /// The walled garden that it is in, whose filter takes the place of its own.
        garden: Option<&'a str> = [text],
        /// Its queues.
        queue: SubscriberQueue<'a> = [part SubscriberQueue],
        /// What its queue towards it holds and has done; null: it has no queues.
        queue_down: Option<QueueNow> = [part QueueNow],
        /// The same from it.
        queue_up: Option<QueueNow> = [part QueueNow],
        /// The id of its account (Acct-Session-Id).
        account: Option<String> = [id text],
        /// Times and limits.
        times: Times = [part Times],
        /// Round trip of the last LCP echo; null: none was answered.
        echo_rtt_us: Option<u32> = [gauge Micros],
        /// Its traffic.
        traffic: Traffic = [part Traffic],
    }
}

row! {
    /// The PPPoE session of a subscriber.
    #[derive(Serialize)]
    PppoePart<'a> is part {
        /// SESSION_ID.
        id: u16 = [id],
        /// The interface.
        interface: &'a str = [id text],
        /// The VLAN ids, the outer one first.
        vlans: Vec<u16> = [text],
        /// The host's MAC address.
        mac: String = [id text],
        /// The Service-Name.
        service: String = [text],
        /// The access concentrator's name.
        ac_name: String = [text],
        /// Agent-Circuit-Id of the line (RFC 4679).
        circuit_id: Option<String> = [text],
        /// Agent-Remote-Id of the line (RFC 4679).
        remote_id: Option<String> = [text],
        /// The largest packet that both ends take (RFC 4638).
        max_payload: u16 = [gauge Bytes],
    }
}

row! {
    /// The tunnel of a subscriber.
    #[derive(Serialize)]
    TunnelPart<'a> is part {
        /// Our tunnel id.
        id: u32 = [id],
        /// The peer's tunnel id.
        remote_id: u32 = [id],
        /// L2TP version, 2 or 3.
        version: u8 = [id],
        /// State name in the RFC.
        #[serde(serialize_with = "text")]
        state: &'a dyn Display = [text],
        /// `lac` if we originated it, else `lns`.
        role: &'a str = [text],
        /// The peer's address and port.
        peer: SocketAddr = [text],
        /// Our address, if it is known.
        local: Option<IpAddr> = [text],
        /// The peer's Host Name.
        host_name: &'a str = [text],
        /// Time since it was established.
        up_s: Option<f64> = [gauge Seconds],
    }
}

row! {
    /// The L2TP session of a subscriber.
    #[derive(Serialize)]
    SessionPart<'a> is part {
        /// Our session id.
        id: u32 = [id],
        /// The peer's session id.
        remote_id: u32 = [id],
        /// `lac` or `lns`, and who placed the call.
        #[serde(serialize_with = "text")]
        role: &'a dyn Display = [text],
        /// State name in the RFC.
        #[serde(serialize_with = "text")]
        state: &'a dyn Display = [text],
        /// Calling Number.
        calling_number: &'a str = [text],
        /// Called Number.
        called_number: &'a str = [text],
        /// Whether our data messages carry sequence numbers.
        sequencing: bool = [text],
        /// Length of the cookie in data messages to us.
        local_cookie_octets: usize = [gauge Bytes],
        /// Length of the cookie in data messages to the peer.
        remote_cookie_octets: usize = [gauge Bytes],
    }
}

row! {
    /// The PPP link of a subscriber.
    #[derive(Serialize)]
    Ppp is part {
        /// LCP.
        lcp: Lcp = [part Lcp],
        /// State of IPCP as in RFC 1661, section 4.2; null if it has not started.
        ipcp: Option<&'static str> = [text],
        /// State of IPv6CP.
        ipv6cp: Option<&'static str> = [text],
        /// Whether the peer is authenticated; for a client, whether the peer accepted us or did not ask.
        authenticated: bool = [text],
        /// Authentication attempts of the peer, modulo 256.
        claims: u8 = [gauge],
        /// Echo-Requests since the last reply.
        echoes_unanswered: u8 = [gauge],
    }
}

row! {
    /// LCP.
    #[derive(Serialize)]
    Lcp is part {
        /// State as in RFC 1661, section 4.2.
        state: &'static str = [text],
        /// The options that we asked for; agreed once LCP is open.
        local: LcpSide = [part LcpSide],
        /// The options that the peer asked for.
        peer: LcpSide = [part LcpSide],
    }
}

row! {
    /// The LCP options of one side.
    #[derive(Serialize)]
    LcpSide is part {
        /// Maximum-Receive-Unit.
        mru: u16 = [gauge Bytes],
        /// Magic-Number, as 0x and eight digits.
        magic: Option<String> = [text],
        /// How the other side must authenticate: `pap`, `chap-md5`.
        authentication: Option<&'static str> = [text],
        /// Protocol-Field-Compression.
        pfc: bool = [text],
        /// Address-and-Control-Field-Compression.
        acfc: bool = [text],
    }
}

row! {
    /// IPv4 of a subscriber.
    #[derive(Serialize)]
    Ipv4<'a> is part {
        /// The subscriber's address, or ours if we are the client. It is held even before IPCP is open.
        address: Option<Ipv4Addr> = [text],
        /// The other end's address, once IPCP is open.
        other: Option<Ipv4Addr> = [text],
        /// Name servers.
        dns: Vec<Ipv4Addr> = [text],
        /// The pool that its profile names.
        pool: Option<&'a str> = [text],
    }
}

row! {
    /// IPv6 of a subscriber: the link-local addresses, and what it holds.
    #[derive(Serialize)]
    Ipv6 is part {
        /// Our address.
        local: Ipv6Addr = [text],
        /// The subscriber's address.
        peer: Ipv6Addr = [text],
        /// The prefix of its link.
        prefix: Option<String> = [text],
        /// The prefix delegated to it.
        delegated: Option<String> = [text],
        /// The address that it leased by DHCPv6.
        address: Option<IpAddr> = [text],
        /// The subscriber's interface identifier, or ours if we are the client.
        interface_id: String = [text],
        /// DHCPv6: `leased` or `none`; for a client of ours, the state of its exchange.
        dhcpv6: &'static str = [text],
        /// Time until the lease of the delegated prefix ends without a renewal; null: it is not leased by DHCPv6.
        delegated_left_s: Option<f64> = [gauge Seconds],
        /// The same of the address.
        address_left_s: Option<f64> = [gauge Seconds],
    }
}

row! {
    /// Times and limits of a subscriber; null: never, or no limit.
    #[derive(Serialize)]
    Times is part {
        /// Time since its session was established.
        age_s: f64 = [gauge Seconds],
        /// Time since its first network protocol opened.
        up_s: Option<f64> = [gauge Seconds],
        /// Session timeout.
        session_timeout_s: Option<f64> = [gauge Seconds],
        /// Time left of the session timeout.
        session_left_s: Option<f64> = [gauge Seconds],
        /// Idle timeout.
        idle_timeout_s: Option<f64> = [gauge Seconds],
        /// Interval between interim accounting records.
        interim_interval_s: Option<f64> = [gauge Seconds],
    }
}

row! {
    /// A subscriber that has disconnected.
    #[derive(Serialize)]
    EndedSubscriber<'a> is "subscriber.ended/1" as Table {
        /// The name that it authenticated with.
        name: &'a str = [id text "NAME"],
        /// Time since it disconnected.
        ended_s_ago: f64 = [gauge Seconds "AGO"],
        /// How long a network protocol was open; null: never.
        up_s: Option<f64> = [gauge Seconds "DURATION"],
        /// Its address.
        address: Option<Ipv4Addr> = [text "ADDRESS"],
        /// `l2tp` or `pppoe`.
        access: &'a str = [text],
        /// Our id of its tunnel; 0: none.
        tunnel: u32 = [id "TUNNEL"],
        /// Our id of its session.
        session: u32 = [id "SESSION"],
        /// The id of its account (Acct-Session-Id).
        account: Option<String> = [id text],
        /// How long its session existed.
        age_s: f64 = [gauge Seconds],
        /// Its traffic.
        #[serde(flatten)]
        traffic: Traffic = [flat Traffic],
        /// Why it ended.
        #[serde(serialize_with = "text")]
        reason: &'a dyn Display = [text "REASON"],
        /// Acct-Terminate-Cause (RFC 2866, section 5.10).
        terminate_cause: u32 = [id],
    }
}

row! {
    /// A subscriber that a request to drop selected.
    #[derive(Serialize)]
    Dropped<'a> is "subscriber.dropped/1" as Own {
        /// The name that it authenticated with.
        name: &'a str = [id text],
        /// Our id of its tunnel; 0: none.
        tunnel: u32 = [id],
        /// Our id of its session.
        session: u32 = [id],
        /// Its address.
        address: Option<Ipv4Addr> = [text],
        /// Time since its first network protocol opened.
        up_s: Option<f64> = [gauge Seconds],
        /// `dropped`; `ending` if it was being disconnected already.
        outcome: &'a str = [text],
        /// Why it was being disconnected already.
        #[serde(serialize_with = "super::maybe_text")]
        ending: Option<&'a dyn Display> = [text],
    }
}

row! {
    /// Rates, template and link of a subscriber's queues, each with its source: `command`, `user` (users file), `radius`,
    /// `pool`, `line` or `default`; null: no source says anything about it.
    #[derive(Clone, Copy, Default, Serialize)]
    SubscriberQueue<'a> is part {
        /// Rate down; null: no limit.
        rate_down_bps: Option<u64> = [gauge PerSecond Bits],
        /// Rate up; null: no limit.
        rate_up_bps: Option<u64> = [gauge PerSecond Bits],
        /// The template.
        template: Option<&'a str> = [text],
        /// The shared link.
        link: Option<&'a str> = [text],
        /// Source of the rate down.
        rate_down_from: Option<&'static str> = [text],
        /// Source of the rate up.
        rate_up_from: Option<&'static str> = [text],
        /// Source of the template.
        template_from: Option<&'static str> = [text],
        /// Source of the link.
        link_from: Option<&'static str> = [text],
    }
}

row! {
    /// What the queue of a subscriber in one direction holds and has done.
    #[derive(Clone, Copy, Serialize)]
    QueueNow is part {
        /// Queued packets.
        backlog_packets: u32 = [gauge],
        /// Their bytes on the line.
        backlog_octets: u32 = [gauge Bytes],
        /// Packets that passed without waiting.
        passed: u64 = [counter],
        /// Packets that waited and were sent.
        waited: u64 = [counter],
        /// Packets dropped: the queue was full, or they were late.
        dropped: u64 = [counter],
        /// Packets marked "congestion experienced" instead of dropped.
        marked: u64 = [counter],
        /// The delay that half of the packets that waited did not exceed, rounded up by at most half; null: none waited.
        delay_p50_us: Option<f64> = [gauge Micros],
        /// The same for 99 of 100 packets.
        delay_p99_us: Option<f64> = [gauge Micros],
    }
}

row! {
    /// Filter, garden, times and networks of a subscriber; null: none, never, or no limit.
    #[derive(Clone, Default, Serialize)]
    SubscriberPolicy<'a> is part {
        /// Its own filter, which has no effect while it is in a garden.
        filter: Option<&'a str> = [text],
        /// The walled garden that it is in.
        garden: Option<&'a str> = [text],
        /// Session timeout.
        session_timeout_s: Option<f64> = [gauge Seconds],
        /// Idle timeout.
        idle_timeout_s: Option<f64> = [gauge Seconds],
        /// Interval between interim accounting records.
        interim_interval_s: Option<f64> = [gauge Seconds],
        /// Networks behind it.
        routes: Vec<String> = [text],
    }
}

row! {
    /// A subscriber that a request changed.
    #[derive(Serialize)]
    SubscriberSet<'a> is "subscriber.set/1" as Own {
        /// The name that it authenticated with.
        name: &'a str = [id text],
        /// Our id of its tunnel; 0: none.
        tunnel: u32 = [id],
        /// Our id of its session.
        session: u32 = [id],
        /// Its queues before the request.
        before: SubscriberQueue<'a> = [part SubscriberQueue],
        /// Its queues now.
        after: SubscriberQueue<'a> = [part SubscriberQueue],
        /// Filter, garden, times and networks before the request.
        policy_before: SubscriberPolicy<'a> = [part SubscriberPolicy],
        /// The same now.
        policy_after: SubscriberPolicy<'a> = [part SubscriberPolicy],
    }
}

row! {
    /// A pool of addresses.
    #[derive(Serialize)]
    Pool<'a> is "pool/1" as Table {
        /// Its name.
        name: &'a str = [id text "POOL"],
        /// Addresses in all.
        size: u32 = [gauge "SIZE"],
        /// Addresses leased now.
        used: u32 = [gauge "USED"],
        /// Free addresses.
        free: u32 = [gauge "FREE"],
        /// Free addresses that are kept for their last user while others are free.
        remembered: u32 = [gauge "REMEMBERED"],
        /// Excluded addresses.
        left_out: u32 = [gauge "EXCLUDED"],
        /// Leases so far.
        taken: u64 = [counter "LEASED"],
        /// Leases of the user's previous address.
        came_back: u64 = [counter "REUSED"],
        /// Leases refused because the pool was full.
        refused: u64 = [counter "REFUSED"],
        /// Whether a user gets its previous address again.
        sticky: bool = [text "STICKY"],
    }
}

row! {
    /// A pool of IPv6 prefixes.
    #[derive(Serialize)]
    PrefixPool<'a> is "pool.prefix/1" as Table {
        /// Its name.
        name: &'a str = [id text "PREFIX POOL"],
        /// The length of its prefixes, in bits.
        length: u8 = [gauge "LENGTH"],
        /// Prefixes in all.
        size: u64 = [gauge "SIZE"],
        /// Prefixes leased now.
        used: u32 = [gauge "USED"],
        /// Free prefixes that are kept for their last user while others are free.
        remembered: u32 = [gauge "REMEMBERED"],
        /// Leases so far.
        taken: u64 = [counter "LEASED"],
        /// Leases of the user's previous prefix.
        came_back: u64 = [counter "REUSED"],
        /// Leases refused because the pool was used up.
        refused: u64 = [counter "REFUSED"],
        /// Whether a user gets its previous prefix again.
        sticky: bool = [text "STICKY"],
    }
}

row! {
    /// Fixed addresses that belong to no pool.
    #[derive(Serialize)]
    Outside<'a> is "pool.outside/1" as Block {
        /// Fixed addresses in use.
        used: usize = [gauge "fixed addresses outside the pools"],
        /// Of these, addresses of ranges that were removed from their pool.
        draining: usize = [gauge "  draining"],
        /// Refusals because the pool does not exist.
        refused_unknown_pool: u64 = [counter "refused: unknown pool"],
        /// Refusals because the address is in use.
        refused_duplicate: u64 = [counter "  address in use"],
        /// Refusals because the address is the edge's own, or no host address.
        refused_reserved: u64 = [counter "  reserved address"],
        /// Refusals because too many fixed addresses are in use.
        refused_full: u64 = [counter "  limit reached"],
    }
}

row! {
    /// The start of a capture.
    #[derive(Serialize)]
    Capture<'a> is "capture/1" as Own {
        /// Subscribers that are captured now.
        subscribers: usize = [gauge],
        /// Format of the file.
        format: &'a str = [text],
    }
}

row! {
    /// The end of a capture.
    #[derive(Serialize)]
    CaptureEnd<'a> is "capture.end/1" as Own {
        /// Packets captured inside the tunnel.
        inside: u64 = [counter],
        /// Datagrams captured outside the tunnel.
        outside: u64 = [counter],
        /// Packets inside that were dropped because the client did not read in time.
        inside_lost: u64 = [counter],
        /// Datagrams outside that were dropped because the client did not read in time.
        outside_lost: u64 = [counter],
    }
}
