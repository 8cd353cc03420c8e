//! Rows of subscribers, of what became of them, and of the pools that they get addresses from.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::Serialize;

use super::text;

/// A subscriber in a list, `subscriber/1`.
#[derive(Serialize)]
pub struct Subscriber<'a> {
    pub schema: &'a str,
    pub name: &'a str,
    /// `link`, `asking`, `networks`, `up`, `ending`.
    pub state: &'a str,
    /// `network` where it comes in here, `client` where we are the client.
    pub role: &'a str,
    pub address: Option<Ipv4Addr>,
    /// Ours, as all ids without `remote_`.
    pub tunnel: u32,
    pub session: u32,
    pub peer: Option<SocketAddr>,
    pub filter: Option<&'a str>,
    pub age_s: f64,
    pub up_s: Option<f64>,
    #[serde(flatten)]
    pub traffic: Traffic,
}

/// Packets and octets of IP; in is from the subscriber.
#[derive(Clone, Copy, Serialize)]
pub struct Traffic {
    pub packets_in: u64,
    pub octets_in: u64,
    pub packets_out: u64,
    pub octets_out: u64,
    pub dropped: u64,
}

/// Everything about one subscriber, `subscriber.detail/1`.
#[derive(Serialize)]
pub struct Detail<'a> {
    pub schema: &'a str,
    pub name: &'a str,
    pub state: &'a str,
    pub role: &'a str,
    /// Why it is told to go.
    #[serde(serialize_with = "super::maybe_text")]
    pub ending: Option<&'a dyn Display>,
    pub tunnel: Option<TunnelPart<'a>>,
    pub session: Option<SessionPart<'a>>,
    pub ppp: Ppp,
    pub ipv4: Ipv4<'a>,
    pub ipv6: Option<Ipv6>,
    /// The largest packet that goes to it whole, in octets; 0 until a network is up.
    pub mtu: u16,
    /// Networks behind it.
    pub routes: Vec<String>,
    /// Of these, the ones that do not lead to it: another has them.
    pub routes_missing: Vec<String>,
    pub filter: Option<&'a str>,
    /// The id of its account (Acct-Session-Id).
    pub account: Option<String>,
    pub times: Times,
    pub traffic: Traffic,
}

/// The tunnel of a subscriber.
#[derive(Serialize)]
pub struct TunnelPart<'a> {
    pub id: u32,
    pub remote_id: u32,
    pub version: u8,
    #[serde(serialize_with = "text")]
    pub state: &'a dyn Display,
    /// `lac` if we originated it, else `lns`.
    pub role: &'a str,
    pub peer: SocketAddr,
    pub local: Option<IpAddr>,
    pub host_name: &'a str,
    pub up_s: Option<f64>,
}

/// The L2TP session of a subscriber.
#[derive(Serialize)]
pub struct SessionPart<'a> {
    pub id: u32,
    pub remote_id: u32,
    #[serde(serialize_with = "text")]
    pub role: &'a dyn Display,
    #[serde(serialize_with = "text")]
    pub state: &'a dyn Display,
    pub calling_number: &'a str,
    pub called_number: &'a str,
    /// Whether our data messages are numbered.
    pub sequencing: bool,
    /// Octets of the cookies that each side puts before its data.
    pub local_cookie_octets: usize,
    pub remote_cookie_octets: usize,
}

/// The PPP link of a subscriber.
#[derive(Serialize)]
pub struct Ppp {
    pub lcp: Lcp,
    /// The states' names as in RFC 1661, section 4.2; null where it is not begun.
    pub ipcp: Option<&'static str>,
    pub ipv6cp: Option<&'static str>,
    /// The peer was let in; of a client, it has let us in or asked for nothing.
    pub authenticated: bool,
    /// Times that it said who it is, modulo 256.
    pub claims: u8,
    /// Echo-Requests since it answered last.
    pub echoes_unanswered: u8,
}

/// LCP.
#[derive(Serialize)]
pub struct Lcp {
    pub state: &'static str,
    /// What we asked for, and was agreed once LCP is open.
    pub local: LcpSide,
    /// What the peer asked for.
    pub peer: LcpSide,
}

/// The options of one side.
#[derive(Serialize)]
pub struct LcpSide {
    pub mru: u16,
    /// As 0x and eight digits.
    pub magic: Option<String>,
    /// What it wants the other side to prove itself by: `pap`, `chap-md5`.
    pub authentication: Option<&'static str>,
    /// Protocol-Field-Compression: the other side may leave out the first octet of some numbers.
    pub pfc: bool,
    /// Address-and-Control-Field-Compression.
    pub acfc: bool,
}

/// IPv4 of a subscriber.
#[derive(Serialize)]
pub struct Ipv4<'a> {
    /// The subscriber's; of a client, ours. Held, whether IPCP is open or not.
    pub address: Option<Ipv4Addr>,
    /// The other end's, once IPCP is open.
    pub other: Option<Ipv4Addr>,
    pub dns: Vec<Ipv4Addr>,
    /// The pool that it was to be from, where its profile names one.
    pub pool: Option<&'a str>,
}

/// IPv6 of a subscriber: the addresses on its link.
#[derive(Serialize)]
pub struct Ipv6 {
    pub local: Ipv6Addr,
    pub peer: Ipv6Addr,
}

/// The times of a subscriber; null is never.
#[derive(Serialize)]
pub struct Times {
    /// Since its session came up.
    pub age_s: f64,
    /// Since its first network did.
    pub up_s: Option<f64>,
    pub session_timeout_s: Option<f64>,
    pub session_left_s: Option<f64>,
    pub idle_timeout_s: Option<f64>,
    pub interim_interval_s: Option<f64>,
}

/// A subscriber that is not on line any more, `subscriber.ended/1`.
#[derive(Serialize)]
pub struct EndedSubscriber<'a> {
    pub schema: &'a str,
    pub name: &'a str,
    pub tunnel: u32,
    pub session: u32,
    pub address: Option<Ipv4Addr>,
    pub account: Option<String>,
    pub ended_s_ago: f64,
    /// From its session's coming up to its end.
    pub age_s: f64,
    /// How long it was on line; null if it never was.
    pub up_s: Option<f64>,
    #[serde(serialize_with = "text")]
    pub reason: &'a dyn Display,
    /// Acct-Terminate-Cause (RFC 2866, section 5.10).
    pub terminate_cause: u32,
    #[serde(flatten)]
    pub traffic: Traffic,
}

/// A subscriber that was told to go, `subscriber.dropped/1`.
#[derive(Serialize)]
pub struct Dropped<'a> {
    pub schema: &'a str,
    pub name: &'a str,
    pub tunnel: u32,
    pub session: u32,
    pub address: Option<Ipv4Addr>,
    pub up_s: Option<f64>,
}

/// A pool of addresses, `pool/1`.
#[derive(Serialize)]
pub struct Pool<'a> {
    pub schema: &'a str,
    pub name: &'a str,
    pub sticky: bool,
    pub size: u32,
    pub used: u32,
    pub free: u32,
    /// Free ones that are kept for the user who had them last, as long as others are free.
    pub remembered: u32,
    /// Those that it does not give out.
    pub left_out: u32,
    pub taken: u64,
    /// Times that a user got its last address back.
    pub came_back: u64,
    /// Times that somebody was refused because all were used.
    pub refused: u64,
}

/// Fixed addresses that are of no pool, `pool.outside/1`.
#[derive(Serialize)]
pub struct Outside<'a> {
    pub schema: &'a str,
    pub used: usize,
    /// Of these, those of ranges that were taken out of their pool.
    pub draining: usize,
    /// Refusals: of a pool that is not there, ...
    pub refused_unknown_pool: u64,
    /// ... of an address that somebody had, ...
    pub refused_duplicate: u64,
    /// ... that is the edge's own or no host's, ...
    pub refused_reserved: u64,
    /// ... because there were too many.
    pub refused_full: u64,
}

/// A capture has begun, `capture/1`.
#[derive(Serialize)]
pub struct Capture<'a> {
    pub schema: &'a str,
    /// How many there are now to be captured.
    pub subscribers: usize,
    pub format: &'a str,
}

/// A capture has ended, `capture.end/1`: packets that were written, and lost because they were not read in time.
#[derive(Serialize)]
pub struct CaptureEnd<'a> {
    pub schema: &'a str,
    pub inside: u64,
    pub outside: u64,
    pub inside_lost: u64,
    pub outside_lost: u64,
}
