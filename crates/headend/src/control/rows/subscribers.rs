//! Rows of subscribers, of what became of them, and of the pools that they get addresses from.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::Serialize;

use super::{text, texts};

/// A subscriber in a list, `subscriber/1`.
#[derive(Serialize)]
pub(crate) struct Subscriber<'a> {
    pub(crate) schema: &'a str,
    pub(crate) name: &'a str,
    /// `link`, `asking`, `networks`, `up`, `ending`.
    pub(crate) state: &'a str,
    /// `network` where it comes in here, `client` where we are the client.
    pub(crate) role: &'a str,
    pub(crate) address: Option<Ipv4Addr>,
    /// Ours, as all ids without `remote_`.
    pub(crate) tunnel: u32,
    pub(crate) session: u32,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) filter: Option<&'a str>,
    pub(crate) age_s: f64,
    pub(crate) up_s: Option<f64>,
    #[serde(flatten)]
    pub(crate) traffic: Traffic,
}

/// Packets and octets of IP; in is from the subscriber.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Traffic {
    pub(crate) packets_in: u64,
    pub(crate) octets_in: u64,
    pub(crate) packets_out: u64,
    pub(crate) octets_out: u64,
    pub(crate) dropped: u64,
}

impl From<edge::Traffic> for Traffic {
    fn from(traffic: edge::Traffic) -> Self {
        Self {
            packets_in: traffic.packets_in,
            octets_in: traffic.octets_in,
            packets_out: traffic.packets_out,
            octets_out: traffic.octets_out,
            dropped: traffic.dropped,
        }
    }
}

/// Everything about one subscriber, `subscriber.detail/1`.
#[derive(Serialize)]
pub(crate) struct Detail<'a> {
    pub(crate) schema: &'a str,
    pub(crate) name: &'a str,
    pub(crate) state: &'a str,
    pub(crate) role: &'a str,
    /// Why it is told to go.
    #[serde(serialize_with = "super::maybe_text")]
    pub(crate) ending: Option<&'a dyn Display>,
    pub(crate) tunnel: Option<TunnelPart<'a>>,
    pub(crate) session: Option<SessionPart<'a>>,
    pub(crate) ppp: Ppp,
    pub(crate) ipv4: Ipv4<'a>,
    pub(crate) ipv6: Option<Ipv6>,
    /// The largest packet that goes to it whole, in octets; 0 until a network is up.
    pub(crate) mtu: u16,
    /// Networks behind it.
    #[serde(serialize_with = "texts")]
    pub(crate) routes: &'a [aaa::Prefix],
    /// Of these, the ones that do not lead to it: another has them.
    #[serde(serialize_with = "texts")]
    pub(crate) routes_missing: &'a [aaa::Prefix],
    pub(crate) filter: Option<&'a str>,
    /// The id of its account (Acct-Session-Id).
    pub(crate) account: Option<String>,
    pub(crate) times: Times,
    pub(crate) traffic: Traffic,
}

/// The tunnel of a subscriber.
#[derive(Serialize)]
pub(crate) struct TunnelPart<'a> {
    pub(crate) id: u32,
    pub(crate) remote_id: u32,
    pub(crate) version: u8,
    #[serde(serialize_with = "text")]
    pub(crate) state: &'a dyn Display,
    /// `lac` if we originated it, else `lns`.
    pub(crate) role: &'a str,
    pub(crate) peer: SocketAddr,
    pub(crate) local: Option<IpAddr>,
    pub(crate) host_name: &'a str,
    pub(crate) up_s: Option<f64>,
}

/// The L2TP session of a subscriber.
#[derive(Serialize)]
pub(crate) struct SessionPart<'a> {
    pub(crate) id: u32,
    pub(crate) remote_id: u32,
    #[serde(serialize_with = "text")]
    pub(crate) role: &'a dyn Display,
    #[serde(serialize_with = "text")]
    pub(crate) state: &'a dyn Display,
    pub(crate) calling_number: &'a str,
    pub(crate) called_number: &'a str,
    /// Whether our data messages are numbered.
    pub(crate) sequencing: bool,
    /// Octets of the cookies that each side puts before its data.
    pub(crate) local_cookie_octets: usize,
    pub(crate) remote_cookie_octets: usize,
}

/// The PPP link of a subscriber.
#[derive(Serialize)]
pub(crate) struct Ppp {
    pub(crate) lcp: Lcp,
    /// The states' names as in RFC 1661, section 4.2; null where it is not begun.
    pub(crate) ipcp: Option<&'static str>,
    pub(crate) ipv6cp: Option<&'static str>,
    /// The peer was let in; of a client, it has let us in or asked for nothing.
    pub(crate) authenticated: bool,
    /// Times that it said who it is, modulo 256.
    pub(crate) claims: u8,
    /// Echo-Requests since it answered last.
    pub(crate) echoes_unanswered: u8,
}

/// LCP.
#[derive(Serialize)]
pub(crate) struct Lcp {
    pub(crate) state: &'static str,
    /// What we asked for, and was agreed once LCP is open.
    pub(crate) local: LcpSide,
    /// What the peer asked for.
    pub(crate) peer: LcpSide,
}

/// The options of one side.
#[derive(Serialize)]
pub(crate) struct LcpSide {
    pub(crate) mru: u16,
    /// As 0x and eight digits.
    pub(crate) magic: Option<String>,
    /// What it wants the other side to prove itself by: `pap`, `chap-md5`.
    pub(crate) authentication: Option<&'static str>,
    /// Protocol-Field-Compression: the other side may leave out the first octet of some numbers.
    pub(crate) pfc: bool,
    /// Address-and-Control-Field-Compression.
    pub(crate) acfc: bool,
}

/// IPv4 of a subscriber.
#[derive(Serialize)]
pub(crate) struct Ipv4<'a> {
    /// The subscriber's; of a client, ours. Held, whether IPCP is open or not.
    pub(crate) address: Option<Ipv4Addr>,
    /// The other end's, once IPCP is open.
    pub(crate) other: Option<Ipv4Addr>,
    pub(crate) dns: Vec<Ipv4Addr>,
    /// The pool that it was to be from, where its profile names one.
    pub(crate) pool: Option<&'a str>,
}

/// IPv6 of a subscriber: the addresses on its link.
#[derive(Serialize)]
pub(crate) struct Ipv6 {
    pub(crate) local: Ipv6Addr,
    pub(crate) peer: Ipv6Addr,
}

/// The times of a subscriber; null is never.
#[derive(Serialize)]
pub(crate) struct Times {
    /// Since its session came up.
    pub(crate) age_s: f64,
    /// Since its first network did.
    pub(crate) up_s: Option<f64>,
    pub(crate) session_timeout_s: Option<f64>,
    pub(crate) session_left_s: Option<f64>,
    pub(crate) idle_timeout_s: Option<f64>,
    pub(crate) interim_interval_s: Option<f64>,
}

/// A subscriber that is not on line any more, `subscriber.ended/1`.
#[derive(Serialize)]
pub(crate) struct EndedSubscriber<'a> {
    pub(crate) schema: &'a str,
    pub(crate) name: &'a str,
    pub(crate) tunnel: u32,
    pub(crate) session: u32,
    pub(crate) address: Option<Ipv4Addr>,
    pub(crate) account: Option<String>,
    pub(crate) ended_s_ago: f64,
    /// From its session's coming up to its end.
    pub(crate) age_s: f64,
    /// How long it was on line; null if it never was.
    pub(crate) up_s: Option<f64>,
    #[serde(serialize_with = "text")]
    pub(crate) reason: &'a dyn Display,
    /// Acct-Terminate-Cause (RFC 2866, section 5.10).
    pub(crate) terminate_cause: u32,
    #[serde(flatten)]
    pub(crate) traffic: Traffic,
}

/// A subscriber that was told to go, `subscriber.dropped/1`.
#[derive(Serialize)]
pub(crate) struct Dropped<'a> {
    pub(crate) schema: &'a str,
    pub(crate) name: &'a str,
    pub(crate) tunnel: u32,
    pub(crate) session: u32,
    pub(crate) address: Option<Ipv4Addr>,
    pub(crate) up_s: Option<f64>,
}

/// A pool of addresses, `pool/1`.
#[derive(Serialize)]
pub(crate) struct Pool<'a> {
    pub(crate) schema: &'a str,
    pub(crate) name: &'a str,
    pub(crate) sticky: bool,
    pub(crate) size: u32,
    pub(crate) used: u32,
    pub(crate) free: u32,
    /// Free ones that are kept for the user who had them last, as long as others are free.
    pub(crate) remembered: u32,
    /// Those that it does not give out.
    pub(crate) left_out: u32,
    pub(crate) taken: u64,
    /// Times that a user got its last address back.
    pub(crate) came_back: u64,
    /// Times that somebody was refused because all were used.
    pub(crate) refused: u64,
}

/// Fixed addresses that are of no pool, `pool.outside/1`.
#[derive(Serialize)]
pub(crate) struct Outside<'a> {
    pub(crate) schema: &'a str,
    pub(crate) used: usize,
    /// Of these, those of ranges that were taken out of their pool.
    pub(crate) draining: usize,
    /// Refusals: of a pool that is not there, ...
    pub(crate) refused_unknown_pool: u64,
    /// ... of an address that somebody had, ...
    pub(crate) refused_duplicate: u64,
    /// ... that is the edge's own or no host's, ...
    pub(crate) refused_reserved: u64,
    /// ... because there were too many.
    pub(crate) refused_full: u64,
}

/// A capture has begun, `capture/1`.
#[derive(Serialize)]
pub(crate) struct Capture<'a> {
    pub(crate) schema: &'a str,
    /// How many there are now to be captured.
    pub(crate) subscribers: usize,
    pub(crate) format: &'a str,
}

/// A capture has ended, `capture.end/1`: packets that were written, and lost because they were not read in time.
#[derive(Serialize)]
pub(crate) struct CaptureEnd<'a> {
    pub(crate) schema: &'a str,
    pub(crate) inside: u64,
    pub(crate) outside: u64,
    pub(crate) inside_lost: u64,
    pub(crate) outside_lost: u64,
}
