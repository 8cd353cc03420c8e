//! L2TP-MIB: RFC 3371. Rows are L2TPv2's: the MIB manages the protocol of RFC 2661, and its identifiers have 16 bits.
//! The domain counts tunnels and sessions of both versions.
//!
//! A row's ifIndex is made of the place of its tunnel, which no other tunnel has while it exists. The config id of
//! `[l2tp] config_ids` is unique for one peer only, and ifIndex has to be unique in the agent (RFC 2863): TUNNEL-MIB
//! leads from it to the ifIndex.

use agentx::pdu::Value;
use base::Duration;
use edge::access::Either::First;
use l2tp::{CallDetails, Endpoint, Role, SessionState, SessionView, TunnelState, TunnelView};

use super::LINKS;
use crate::core::Core;

const FALSE: Value = Value::Integer(2);
const TRUE: Value = Value::Integer(1);

/// The longest domain (l2tpDomainConfigId).
const DOMAIN_MAX: usize = 80;

fn text(octets: &[u8]) -> Value {
    Value::Octets(octets.to_vec())
}

/// Seconds within a range.
fn seconds(duration: Duration, low: u64, high: u64) -> Value {
    let seconds = duration.as_nanos() / 1_000_000_000;
    Value::Integer(seconds.clamp(low, high) as i32)
}

/// A counter of 32 bits, which wraps.
fn counter(count: u64) -> Value {
    Value::Counter32(count as u32)
}

/// The domain of all tunnels: our host name.
pub(super) fn domain(endpoint: &Endpoint) -> &[u8] {
    let name = endpoint.config().host_name.as_bytes();
    &name[..name.len().min(DOMAIN_MAX)]
}

/// The groups l2tpConfig and l2tpStats.
pub(super) fn scalar(endpoint: &Endpoint, is_stats: bool, column: u32) -> Option<Value> {
    Some(match (is_stats, column) {
        // l2tpAdminState: enabled
        (false, 1) => Value::Integer(1),
        // l2tpDrainTunnels, l2tpDrainingTunnels
        (false, 2) | (true, 4) => FALSE,
        // l2tpProtocolVersions: version 1, revision 0 (RFC 2661, section 4.4.3)
        (true, 1) => text(&[1, 0]),
        (true, 2) => text(endpoint.config().vendor_name.as_bytes()),
        // l2tpFirmwareRev: as in our SCCRQ and SCCRP
        (true, 3) => Value::Integer(i32::from(l2tp::FIRMWARE_REVISION)),
        _ => return None,
    })
}

/// l2tpDomainConfigTable
pub(super) fn domain_config(endpoint: &Endpoint, column: u32) -> Option<Value> {
    Some(match column {
        // l2tpDomainConfigAdminState: enabled
        2 => Value::Integer(1),
        3 => FALSE,
        4..=13 => common_config(endpoint, column - 1)?,
        14 => TRUE,
        // l2tpDomainConfigStorageType: readOnly
        15 => Value::Integer(5),
        // l2tpDomainConfigStatus: active
        16 => Value::Integer(1),
        _ => return None,
    })
}

/// The columns that a domain and a tunnel share, by their numbers in l2tpTunnelConfigTable.
fn common_config(endpoint: &Endpoint, column: u32) -> Option<Value> {
    let config = endpoint.config();
    Some(match column {
        // Auth: challenge or none
        3 => Value::Integer(if config.secret.is_some() { 3 } else { 1 }),
        // Secret: always empty (RFC 3371)
        4 => text(&[]),
        // Security: none
        5 => Value::Integer(1),
        6 => seconds(config.hello_interval, 0, 3_600),
        // IdleTimeout: -1 is no limit
        7 if config.idle_tunnel == Duration::ZERO => Value::Integer(-1),
        7 => seconds(config.idle_tunnel, 0, 86_400),
        8 => Value::Integer(i32::from(config.receive_window)),
        9 => Value::Integer(i32::from(config.retransmit.tries).min(32)),
        10 => seconds(config.retransmit.cap, 1, 32),
        // PayloadSeq: never
        11 => Value::Integer(2),
        // ReassemblyTO in milliseconds
        12 => Value::Integer(0),
        _ => return None,
    })
}

/// l2tpDomainStatsTable
pub(super) fn domain_stats(endpoint: &Endpoint, column: u32) -> Option<Value> {
    let (totals, counts) = (endpoint.totals(), endpoint.counts());
    let gauge = Value::Gauge32;
    Some(match column {
        1 => counter(totals.tunnels_established),
        2 => {
            let under_way = u64::from(counts.tunnels - counts.established);
            let others = totals.tunnels_opened - totals.tunnels_established;
            counter(others.saturating_sub(under_way))
        }
        4 => gauge(counts.established),
        5 => counter(totals.sessions_established),
        7 => gauge(counts.sessions_established),
        8 => FALSE,
        10 => counter(totals.control_received),
        12 => counter(totals.control_sent),
        19 => Value::Counter64(totals.control_received),
        21 => Value::Counter64(totals.control_sent),
        _ => return None,
    })
}

/// l2tpTunnelConfigTable
pub(super) fn tunnel_config(
    endpoint: &Endpoint,
    _tunnel: &TunnelView<'_>,
    column: u32,
) -> Option<Value> {
    Some(match column {
        2 => text(domain(endpoint)),
        // l2tpTunnelConfigTransport: udpIp
        13 => Value::Integer(3),
        14 => FALSE,
        15 => TRUE,
        shared => common_config(endpoint, shared)?,
    })
}

/// l2tpTunnelStatsTable
pub(super) fn tunnel_stats(tunnel: &TunnelView<'_>, column: u32) -> Option<Value> {
    let number = |number: u16| Value::Integer(i32::from(number));
    Some(match column {
        1 => Value::Integer(tunnel.id as i32),
        2 => Value::Integer(tunnel.remote_id as i32),
        3 => Value::Integer(match (tunnel.closing, tunnel.state) {
            (true, _) => 4,
            (false, TunnelState::Idle) => 1,
            (false, TunnelState::WaitCtlReply | TunnelState::WaitCtlConn) => 2,
            (false, TunnelState::Established) => 3,
        }),
        4 => Value::Integer(if tunnel.originated { 1 } else { 2 }),
        5 => text(tunnel.host_name.as_bytes()),
        // l2tpTunnelStatsRemoteProtocolVer: no other one is accepted
        8 => text(&[1, 0]),
        9 => number(tunnel.peer_window),
        12 => Value::Counter32(tunnel.received),
        16 => Value::Counter32(tunnel.sent),
        18 => Value::Counter32(tunnel.retransmissions),
        19 => Value::Gauge32(u32::from(tunnel.cwnd.min(tunnel.peer_window))),
        20 => number(tunnel.next_ns),
        21 => number(tunnel.oldest_ns),
        22 => number(tunnel.nr),
        26 => Value::Gauge32(tunnel.sessions),
        30 => FALSE,
        _ => return None,
    })
}

/// l2tpUdpStatsTable
pub(super) fn udp_stats(core: &Core, tunnel: &TunnelView<'_>, column: u32) -> Option<Value> {
    let port = match column {
        2 => Some(tunnel.route.peer.port()),
        3 => core
            .sockets
            .local_addr(tunnel.route.socket)
            .map(|local| local.port()),
        _ => return None,
    };
    Some(Value::Integer(i32::from(port.unwrap_or(0))))
}

/// l2tpSessionStatsTable
pub(super) fn session_stats(core: &Core, session: &SessionView<'_>, column: u32) -> Option<Value> {
    let subscriber = || core.edge.subscriber_in(First(session.key));
    let calls = session.details;
    let speed = |bps: fn(&CallDetails) -> u64| {
        let bps = calls.map_or(0, bps);
        Value::Gauge32(u32::try_from(bps).unwrap_or(u32::MAX))
    };
    let string = |field: fn(&CallDetails) -> &[u8]| text(calls.map_or(&[], field));
    let proxy = calls.and_then(|call| call.proxy.as_deref());
    Some(match column {
        // l2tpSessionStatsIfIndex: that of the PPP link, or 0 without one
        2 => {
            Value::Integer(subscriber().map_or(0, |view| LINKS + view.key.to_token() as u32) as i32)
        }
        4 => Value::Integer(session.remote_id as i32),
        5 => text(subscriber().map_or(&[], |view| view.name)),
        6 => Value::Integer(match session.state {
            SessionState::Idle => 1,
            SessionState::WaitTunnel
            | SessionState::WaitReply
            | SessionState::WaitConnect
            | SessionState::WaitCsAnswer => 2,
            SessionState::Established => 3,
        }),
        7 => Value::Integer(match session.role {
            Role::LacIncoming => 1,
            Role::LnsIncoming => 2,
            Role::LacOutgoing => 3,
            Role::LnsOutgoing => 4,
        }),
        8 => Value::Gauge32(calls.map_or(0, |call| call.serial)),
        9 => speed(|call| call.tx_speed_bps),
        10 => speed(|call| call.rx_speed_bps),
        11 => types(calls.map_or(0, |call| call.bearer_type)),
        12 => types(calls.map_or(0, |call| call.framing_type)),
        13 => Value::Gauge32(calls.and_then(|call| call.physical_channel).unwrap_or(0)),
        14 => string(|call| &call.called_number),
        15 => string(|call| &call.calling_number),
        16 => string(|call| &call.sub_address),
        17 => string(|call| &call.private_group),
        18 => Value::Integer(if proxy.is_some() { 1 } else { 2 }),
        // l2tpSessionStatsAuthMethod, from the Proxy Authen Type (RFC 2661, section 4.4.5)
        19 => Value::Integer(match proxy.and_then(|proxy| proxy.authen_type) {
            None | Some(4) => 1,
            Some(1) => 2,
            Some(2) => 3,
            Some(3) => 4,
            Some(5) => 6,
            Some(_) => 8,
        }),
        // l2tpSessionStatsSequencingState
        20 => Value::Integer(if session.sequencing { 2 } else { 1 }),
        23 => Value::Integer(session.next_sent as i32),
        24 => Value::Integer(session.next_expected as i32),
        _ => return None,
    })
}

/// Digital or synchronous in bit 0, analog or asynchronous in bit 1 (RFC 2661, sections 4.4.4 and 4.4.3). The MIB has no
/// number for a call that may be either: it is not determined, as one without a bit.
fn types(bits: u32) -> Value {
    Value::Integer(match bits & 3 {
        1 => 2,
        2 => 3,
        _ => 1,
    })
}
