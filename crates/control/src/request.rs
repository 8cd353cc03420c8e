//! The requests of the control protocol.
#![allow(
    missing_docs,
    reason = "docs/control-protocol.md describes each field of each request"
)]

mod nat;

use std::net::SocketAddr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::VERSION;
use super::net::Net;
use super::reply::{Code, Refusal};
pub use nat::{NatForward, NatForwardName, NatPort, Transport, address_and_port};

/// A request with the number that its replies carry.
#[derive(Debug)]
pub struct Request<T = Do> {
    /// Chosen by the client.
    pub id: u64,
    /// What to do.
    pub what: T,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do")]
pub enum Do {
    /// Opens tunnels to one peer.
    #[serde(rename = "tunnel.create")]
    TunnelCreate(TunnelCreate),
    /// Closes one tunnel or all.
    #[serde(rename = "tunnel.delete")]
    TunnelDelete(TunnelDelete),
    /// Opens sessions in one tunnel.
    #[serde(rename = "session.create")]
    SessionCreate(SessionCreate),
    /// Closes a session.
    #[serde(rename = "session.delete")]
    SessionDelete(SessionName),
    /// Accepts an outgoing call that the peer requested.
    #[serde(rename = "session.answer")]
    SessionAnswer(SessionName),
    /// Disconnects subscribers cleanly.
    #[serde(rename = "session.drop")]
    SessionDrop(SubscriberSelector),
    /// Changes the queues, filter, garden, times or networks of one subscriber.
    #[serde(rename = "session.set")]
    SessionSet(SessionSet),
    /// Captures the packets of a subscriber as pcapng.
    #[serde(rename = "capture.subscriber")]
    CaptureSubscriber(CaptureSubscriber),
    /// Stops a capture of this connection.
    #[serde(rename = "capture.stop")]
    CaptureStop(CaptureStop),
    /// Live tunnels.
    #[serde(rename = "show.tunnels")]
    ShowTunnels(Nothing),
    /// Live sessions.
    #[serde(rename = "show.sessions")]
    ShowSessions(Nothing),
    /// Peers by address.
    #[serde(rename = "show.peers")]
    ShowPeers(Nothing),
    /// Tunnels that ended and why, newest first.
    #[serde(rename = "show.ended.tunnels")]
    ShowEndedTunnels(Nothing),
    /// Sessions that ended and why, newest first.
    #[serde(rename = "show.ended.sessions")]
    ShowEndedSessions(Nothing),
    /// Subscribers, connected or connecting.
    #[serde(rename = "show.subscribers")]
    ShowSubscribers(SubscriberFilter),
    /// The subscribers with the most dropped packets, or the longest round trips.
    #[serde(rename = "show.worst")]
    ShowWorst(ShowWorst),
    /// Everything about one subscriber.
    #[serde(rename = "show.subscriber")]
    ShowSubscriber(ShowSubscriber),
    /// Subscribers that ended and why, newest first.
    #[serde(rename = "show.ended.subscribers")]
    ShowEndedSubscribers(Nothing),
    /// Pools of addresses.
    #[serde(rename = "show.pools")]
    ShowPools(Nothing),
    /// RADIUS servers.
    #[serde(rename = "show.radius")]
    ShowRadius(Nothing),
    /// Filters.
    #[serde(rename = "show.filters")]
    ShowFilters(Nothing),
    /// The queues of shaped subscribers.
    #[serde(rename = "show.queue")]
    ShowQueue(SubscriberSelector),
    /// The lines of a filter.
    #[serde(rename = "show.filter")]
    ShowFilter(FilterName),
    /// The BGP speaker and its peers.
    #[serde(rename = "show.bgp.summary")]
    ShowBgpSummary(BgpWhose),
    /// Everything about its peers, or about one.
    #[serde(rename = "show.bgp.neighbors")]
    ShowBgpNeighbors(BgpNeighbors),
    /// Its routes, or all of a prefix.
    #[serde(rename = "show.bgp.route")]
    ShowBgpRoute(BgpRoutes),
    /// Size and memory of its tables.
    #[serde(rename = "show.bgp.rib")]
    ShowBgpRib(BgpWhose),
    /// Recent events.
    #[serde(rename = "show.bgp.events")]
    ShowBgpEvents(BgpNeighbors),
    /// Starts, stops, resets or refreshes a peer.
    #[serde(rename = "bgp.peer")]
    BgpPeer(BgpPeer),
    /// All counters.
    #[serde(rename = "show.counters")]
    ShowCounters(Nothing),
    /// Descriptors and waits.
    #[serde(rename = "show.event.poll")]
    ShowEventPoll(Nothing),
    /// The timer store.
    #[serde(rename = "show.event.timers")]
    ShowEventTimers(BgpWhose),
    /// Time spent in each handler.
    #[serde(rename = "show.event.cpu")]
    ShowEventCpu(Nothing),
    /// The threads that forward packets.
    #[serde(rename = "show.event.shards")]
    ShowEventShards(Nothing),
    /// What the daemon wants of the kernel, and what the kernel has.
    #[serde(rename = "show.kernel")]
    ShowKernel(Nothing),
    /// The interfaces with PPPoE subscribers.
    #[serde(rename = "show.pppoe")]
    ShowPppoe(Nothing),
    /// The translation of addresses: totals, and packets dropped by reason.
    #[serde(rename = "show.nat")]
    ShowNat(Nothing),
    /// The subscribers that are translated.
    #[serde(rename = "show.nat.subscribers")]
    ShowNatSubscribers(Nothing),
    /// The ports that are forwarded.
    #[serde(rename = "show.nat.forwards")]
    ShowNatForwards(Nothing),
    /// Who has an external port now.
    #[serde(rename = "nat.who")]
    NatWho(NatPort),
    /// Forwards a port.
    #[serde(rename = "nat.forward.add")]
    NatForwardAdd(NatForward),
    /// Ends a port forwarding.
    #[serde(rename = "nat.forward.delete")]
    NatForwardDelete(NatForwardName),
    /// The state of the whole daemon in one row.
    #[serde(rename = "show.now")]
    ShowNow(Nothing),
    /// What the daemon recorded of the last day.
    #[serde(rename = "show.history")]
    ShowHistory(HistoryFilter),
    /// Resources of the process, and counts of what it holds.
    #[serde(rename = "server.stats")]
    ServerStats(Nothing),
    /// Reads the configuration again.
    #[serde(rename = "reload")]
    Reload(Reload),
    /// Keeps what a reload with a timeout applied.
    #[serde(rename = "confirm")]
    Confirm(Nothing),
}

impl Do {
    /// The verb.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Do::TunnelCreate(_) => "tunnel.create",
            Do::TunnelDelete(_) => "tunnel.delete",
            Do::SessionCreate(_) => "session.create",
            Do::SessionDelete(_) => "session.delete",
            Do::SessionAnswer(_) => "session.answer",
            Do::SessionDrop(_) => "session.drop",
            Do::SessionSet(_) => "session.set",
            Do::CaptureSubscriber(_) => "capture.subscriber",
            Do::CaptureStop(_) => "capture.stop",
            Do::ShowTunnels(_) => "show.tunnels",
            Do::ShowSessions(_) => "show.sessions",
            Do::ShowPeers(_) => "show.peers",
            Do::ShowEndedTunnels(_) => "show.ended.tunnels",
            Do::ShowEndedSessions(_) => "show.ended.sessions",
            Do::ShowSubscribers(_) => "show.subscribers",
            Do::ShowWorst(_) => "show.worst",
            Do::ShowSubscriber(_) => "show.subscriber",
            Do::ShowEndedSubscribers(_) => "show.ended.subscribers",
            Do::ShowPools(_) => "show.pools",
            Do::ShowRadius(_) => "show.radius",
            Do::ShowFilters(_) => "show.filters",
            Do::ShowQueue(_) => "show.queue",
            Do::ShowFilter(_) => "show.filter",
            Do::ShowBgpSummary(_) => "show.bgp.summary",
            Do::ShowBgpNeighbors(_) => "show.bgp.neighbors",
            Do::ShowBgpRoute(_) => "show.bgp.route",
            Do::ShowBgpRib(_) => "show.bgp.rib",
            Do::ShowBgpEvents(_) => "show.bgp.events",
            Do::BgpPeer(_) => "bgp.peer",
            Do::ShowCounters(_) => "show.counters",
            Do::ShowEventPoll(_) => "show.event.poll",
            Do::ShowEventTimers(_) => "show.event.timers",
            Do::ShowEventCpu(_) => "show.event.cpu",
            Do::ShowEventShards(_) => "show.event.shards",
            Do::ShowKernel(_) => "show.kernel",
            Do::ShowPppoe(_) => "show.pppoe",
            Do::ShowNat(_) => "show.nat",
            Do::ShowNatSubscribers(_) => "show.nat.subscribers",
            Do::ShowNatForwards(_) => "show.nat.forwards",
            Do::NatWho(_) => "nat.who",
            Do::NatForwardAdd(_) => "nat.forward.add",
            Do::NatForwardDelete(_) => "nat.forward.delete",
            Do::ShowNow(_) => "show.now",
            Do::ShowHistory(_) => "show.history",
            Do::ServerStats(_) => "server.stats",
            Do::Reload(_) => "reload",
            Do::Confirm(_) => "confirm",
        }
    }
}

/// A verb without arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Arguments of `show.history`: a series must match each of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryFilter {
    /// Only the series of this field of `now/1`, and of the fields within.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// Only steps of this length: 1 (the last ten minutes) or 60 (the last day).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_s: Option<u32>,
}

/// Arguments of `reload`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Reload {
    /// Undo the reload after S seconds unless "headend confirm" comes, 1 to 86400
    #[arg(long = "timeout", value_name = "S")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
}

/// The router whose routes are shown: one of an emulation, or the only one of a daemon.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct BgpWhose {
    /// A router of an emulation; a daemon has one router without a name
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<String>,
}

/// Arguments of `show.bgp.neighbors` and `show.bgp.events`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct BgpNeighbors {
    /// The peer's address or name [default: all peers]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// A router of an emulation; a daemon has one router without a name
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<String>,
}

/// Arguments of `show.bgp.route`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct BgpRoutes {
    /// Show everything about the routes of this prefix, or of the longest prefix that matches an address
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Show the prefixes within PREFIX instead
    #[arg(long, requires = "prefix")]
    #[serde(default)]
    pub longer: bool,
    /// Show the routes received from this peer, given by address or name
    #[arg(long, value_name = "PEER")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<String>,
    /// Show the routes advertised to this peer instead
    #[arg(long, value_name = "PEER", conflicts_with = "received")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advertised: Option<String>,
    /// A router of an emulation; a daemon has one router without a name
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<String>,
}

/// Arguments of `bgp.peer`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BgpPeer {
    /// Its address or name, or `all`.
    pub peer: String,
    pub verb: BgpVerb,
    /// For the peer's operator (RFC 9003).
    #[serde(default)]
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<String>,
}

/// What to do with a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BgpVerb {
    Start,
    Stop,
    Reset,
    /// Request its routes again.
    RefreshIn,
    /// Send our routes again.
    RefreshOut,
}

/// Arguments of `tunnel.create`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunnelCreate {
    /// Address and port of the peer.
    pub peer: SocketAddr,
    /// 2 or 3.
    #[serde(default = "three")]
    pub version: u8,
    /// How many.
    #[serde(default = "one")]
    pub count: u32,
    /// Source addresses are taken from here in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Net>,
    /// Number of the first source address within `from`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skip: u64,
    /// Open a session in each.
    #[serde(default)]
    pub session: bool,
    /// When to reply.
    #[serde(default)]
    pub wait: Wait,
}

/// Arguments of `tunnel.delete`: a tunnel or `all`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunnelDelete {
    /// Local tunnel id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<u32>,
    /// 2 or 3, if both versions use that id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u8>,
    /// Every tunnel.
    #[serde(default)]
    pub all: bool,
}

/// Arguments of `session.create`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionCreate {
    /// Local tunnel id.
    pub tunnel: u32,
    /// 2 or 3, if both versions use that id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u8>,
    /// How many.
    #[serde(default = "one")]
    pub count: u32,
    /// An outgoing call (OCRQ) and not an incoming one (ICRQ).
    #[serde(default)]
    pub outgoing: bool,
    /// Type of the pseudowire, in L2TPv3.
    #[serde(default)]
    pub pseudowire: Wire,
    /// Called Number AVP.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub called: String,
    /// Calling Number AVP.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub calling: String,
    /// When to reply.
    #[serde(default)]
    pub wait: Wait,
}

/// A session by its tunnel's and its own local id.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionName {
    /// Local tunnel id.
    pub tunnel: u32,
    /// Local session id.
    pub session: u32,
    /// 2 or 3, if both versions use that tunnel id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u8>,
}

/// A subscriber: `who`, or its tunnel's and session's local ids.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubscriberSelector {
    /// A name, or else an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// Local tunnel id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<u32>,
    /// Local session id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<u32>,
    /// 2 or 3, if both versions use that tunnel id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u8>,
}

/// Arguments of `session.set`: at least one of the changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionSet {
    /// The subscriber; an object, as [`SubscriberSelector`].
    pub of: SubscriberSelector,
    /// Its rate down in bits per second; 0: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_down_bps: Option<u64>,
    /// Its rate up in bits per second; 0: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_up_bps: Option<u64>,
    /// The template of its queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Its shared link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// First forget what earlier requests set for the queues.
    #[serde(default)]
    pub reset: bool,
    /// Its filter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Its walled garden; `none`: it leaves the one that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub garden: Option<String>,
    /// Its longest session in seconds, from its start; 0: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_timeout_s: Option<u32>,
    /// Its longest time without a data packet in seconds; 0: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_s: Option<u32>,
    /// Seconds between its interim accounting records; 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interim_interval_s: Option<u32>,
    /// The networks behind it, such as `10.1.0.0/16`. They replace those of the same version of IP; an empty list removes
    /// all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routes: Option<Vec<String>>,
}

/// Arguments of `show.subscriber`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowSubscriber {
    /// The subscriber; an object, as [`SubscriberSelector`].
    pub of: SubscriberSelector,
    /// Number of ended sessions of this name to list.
    #[serde(default = "ten")]
    pub history: u32,
}

/// Arguments of `show.filter`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilterName {
    /// Its Filter-Id.
    pub name: String,
}

/// Arguments of `capture.subscriber`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureSubscriber {
    /// The subscriber; an object, as [`SubscriberSelector`].
    pub of: SubscriberSelector,
    /// Start even if no subscriber of the name is connected.
    #[serde(default)]
    pub wait: bool,
    /// Stop after this many packets on both interfaces together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Bytes to keep of each packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snap: Option<u32>,
}

/// Arguments of `capture.stop`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureStop {
    /// The id of the request that started it.
    pub capture: u64,
}

/// Arguments of `show.subscribers`: a row must match each of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct SubscriberFilter {
    /// Only subscribers whose names contain this text
    #[arg(long, value_name = "TEXT")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Only subscribers in this state
    #[arg(long, value_enum)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Only subscribers in the tunnel with this local id
    #[arg(long, value_name = "ID")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<u32>,
    /// At most N subscribers; with --sort 1 to 1000
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The first N subscribers of all in this order
    #[arg(long, value_enum, value_name = "ORDER", requires = "limit")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<SubscriberOrder>,
    /// Reverse the order
    #[arg(long, requires = "sort")]
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub reverse: bool,
}

/// An order of subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum SubscriberOrder {
    /// Names, by their bytes
    Name,
    /// The oldest session first
    Age,
    /// The most bytes per second first, both directions, since the last such request; at first since the session came up
    Rate,
    /// The most dropped packets first, both directions
    Dropped,
    /// The longest round trip of the last LCP echo first
    RoundTrip,
}

/// Arguments of `show.worst`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct ShowWorst {
    /// What to compare
    #[arg(long, value_enum, default_value = "dropped")]
    #[serde(default)]
    pub by: WorstBy,
    /// At most N subscribers, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[serde(default = "ten")]
    pub count: u32,
}

/// What the worst subscribers have the most of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum WorstBy {
    /// Dropped packets, both directions
    #[default]
    Dropped,
    /// The round trip of the last LCP echo
    RoundTrip,
}

/// The state of a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// LCP or authentication is in progress
    Link,
    /// Waiting for the users file or a RADIUS server
    Asking,
    /// Authenticated; addresses are being negotiated
    Networks,
    /// A network protocol is open
    Up,
    /// We are disconnecting it
    Ending,
}

/// When the daemon replies to a creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// When it is up or has failed.
    #[default]
    Up,
    /// At once.
    None,
}

/// A pseudowire type of L2TPv3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// PPP frames.
    #[default]
    Ppp,
    /// Ethernet frames.
    Ethernet,
    /// Ethernet frames of one VLAN.
    Vlan,
}

fn one() -> u32 {
    1
}

fn ten() -> u32 {
    10
}

fn three() -> u8 {
    3
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Reads one line.
///
/// # Errors
/// Why it is refused, and the request's id if it could be read (else 0).
pub fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<Request<T>, (u64, Refusal)> {
    let bad = |id, message: String| (id, Refusal::new(Code::BadRequest, message));
    let mut value: Value = serde_json::from_slice(line)
        .map_err(|error| bad(0, format!("this is no line of JSON: {error}")))?;
    let Some(object) = value.as_object_mut() else {
        return Err(bad(
            0,
            "a request is an object: {\"v\":1,\"id\":1,\"do\":\"...\"}".into(),
        ));
    };
    let version = object.remove("v");
    let id = object.remove("id").and_then(|id| id.as_u64());
    let Some(id) = id else {
        return Err(bad(0, "id is missing; it must be an integer from 0".into()));
    };
    if version.as_ref().and_then(Value::as_u64) != Some(u64::from(VERSION)) {
        let message = format!("v must be {VERSION}, the version that this daemon speaks");
        return Err((id, Refusal::new(Code::Version, message)));
    }
    let what = T::deserialize(value).map_err(|error| bad(id, error.to_string()))?;
    Ok(Request { id, what })
}

/// Appends the line of a request.
pub fn write<T: Serialize>(out: &mut Vec<u8>, id: u64, what: &T) {
    #[derive(Serialize)]
    struct Line<'a, T> {
        v: u32,
        id: u64,
        #[serde(flatten)]
        what: &'a T,
    }
    let line = Line {
        v: VERSION,
        id,
        what,
    };
    serde_json::to_writer(&mut *out, &line).expect("a request has no key that JSON cannot have");
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &str) -> (u64, String) {
        let (id, refusal) = parse::<Do>(line.as_bytes()).unwrap_err();
        (id, refusal.message)
    }

    #[test]
    fn a_request_that_was_written_is_read_again() {
        let what = Do::TunnelCreate(TunnelCreate {
            peer: "127.0.0.1:1701".parse().unwrap(),
            version: 2,
            count: 9,
            from: Some("127.1.0.0/16".parse().unwrap()),
            skip: 3,
            session: true,
            wait: Wait::None,
        });
        let mut line = Vec::new();
        write(&mut line, 7, &what);
        let request = parse::<Do>(&line).unwrap();
        assert_eq!((request.id, request.what), (7, what));
    }

    #[test]
    fn each_request_has_the_name_of_its_verb() {
        let (_, told) = refusal(r#"{"v":1,"id":1,"do":"?"}"#);
        let (_, verbs) = told.split_once("expected one of").unwrap();
        let verbs: Vec<&str> = verbs.split('`').skip(1).step_by(2).collect();
        assert!(verbs.contains(&"reload"), "{told}");
        let arguments = [
            "",
            r#","peer":"127.0.0.1:1701""#,
            r#","peer":"one","verb":"start""#,
            r#","tunnel":1"#,
            r#","tunnel":1,"session":1"#,
            r#","who":"one""#,
            r#","of":{"who":"one"}"#,
            r#","capture":1"#,
            r#","name":"one""#,
            r#","external":"192.0.2.1:80""#,
            r#","protocol":"udp","inside":"100.64.0.1:80""#,
            r#","protocol":"tcp","external":"192.0.2.1:80""#,
        ];
        for verb in verbs {
            let parsed = arguments.iter().find_map(|more| {
                let line = format!(r#"{{"v":1,"id":1,"do":"{verb}"{more}}}"#);
                parse::<Do>(line.as_bytes()).ok()
            });
            assert_eq!(parsed.map(|request| request.what.name()), Some(verb));
        }
    }

    #[test]
    fn what_is_left_out_has_the_documented_default() {
        let line = r#"{"v":1,"id":2,"do":"tunnel.create","peer":"127.0.0.1:1701"}"#;
        let Do::TunnelCreate(create) = parse(line.as_bytes()).unwrap().what else {
            panic!("another verb")
        };
        assert_eq!(
            (create.version, create.count, create.session),
            (3, 1, false)
        );
        assert_eq!((create.from, create.wait), (None, Wait::Up));
    }

    #[test]
    fn what_is_wrong_is_refused_with_the_id_it_came_with() {
        assert_eq!(refusal("{").0, 0);
        assert_eq!(refusal("[]").0, 0);
        assert_eq!(refusal(r#"{"v":1,"do":"show.peers"}"#).0, 0);
        assert_eq!(refusal(r#"{"v":2,"id":3,"do":"show.peers"}"#).0, 3);
        let (id, message) = refusal(r#"{"v":1,"id":4,"do":"show.peer"}"#);
        assert!(
            id == 4 && message.contains("unknown variant `show.peer`"),
            "{message}"
        );
        let (id, message) = refusal(r#"{"v":1,"id":5,"do":"show.peers","colour":1}"#);
        assert!(
            id == 5 && message.contains("unknown field `colour`"),
            "{message}"
        );
        let (id, message) = refusal(r#"{"v":1,"id":6,"do":"tunnel.create","peer":"nowhere"}"#);
        assert!(
            id == 6 && message.contains("invalid socket address"),
            "{message}"
        );
    }
}
