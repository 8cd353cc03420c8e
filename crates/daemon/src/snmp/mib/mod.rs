//! The objects: tables with their columns in the order of their names, and the next object after any name.
//!
//! | module | contents |
//! |---|---|
//! | `index` | the first row that a name may mean |
//! | `l2tp` | L2TP-MIB (RFC 3371) |
//! | `tunnel` | TUNNEL-MIB (RFC 4087) |
//! | `ppp` | parts of PPP-LCP-MIB (RFC 1471) and PPP-IP-NCP-MIB (RFC 1473) |
//! | `bgp` | BGP4-MIB (RFC 4273) |
//!
//! A table finds the first row that is not before an index in O(log n) and stores nothing between questions, except for
//! BGP's peers, and tunnels by addresses and config id: these are sorted while a manager asks.

mod bgp;
mod index;
mod l2tp;
mod ppp;
#[cfg(test)]
mod tests;
mod tunnel;

use agentx::pdu::{Value, Variable};
use agentx::{Answer, Oid, Question};
use reactor::Slice;

use self::index::{Bound, INDEX_MAX, Index};
use crate::core::Core;

const BGP: &[u32] = &[1, 3, 6, 1, 2, 1, 15];
const PPP_LINKS: &[u32] = &[1, 3, 6, 1, 2, 1, 10, 23, 1, 1];
const PPP_IP: &[u32] = &[1, 3, 6, 1, 2, 1, 10, 23, 3];
const L2TP: &[u32] = &[1, 3, 6, 1, 2, 1, 10, 95];
const TUNNEL: &[u32] = &[1, 3, 6, 1, 2, 1, 10, 131];

/// ifIndex of the tunnel at place 0. The kernel numbers its interfaces from 1.
const TUNNELS: u32 = 100_000_000;
/// ifIndex of the PPP link of the subscriber at place 0.
const LINKS: u32 = 200_000_000;

/// The subtrees to register.
pub(super) fn subtrees(has_bgp: bool) -> impl Iterator<Item = &'static [u32]> {
    let bgp = has_bgp.then_some(BGP);
    [PPP_LINKS, PPP_IP, L2TP, TUNNEL].into_iter().chain(bgp)
}

/// What a table lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    L2tpConfig,
    L2tpStats,
    DomainConfig,
    DomainStats,
    TunnelConfig,
    TunnelStats,
    SessionStats,
    UdpStats,
    TunnelIf,
    TunnelIds,
    TunnelInetIds,
    LinkStatus,
    IpStatus,
    BgpScalars,
    BgpPeers,
}

/// A table, or some objects that have one value each.
struct Table {
    rows: Rows,
    /// The name of its entry: what is before the column.
    entry: &'static [u32],
    /// In order; those that are not accessible, or not known here, are left out.
    columns: &'static [u32],
}

const fn table(rows: Rows, entry: &'static [u32], columns: &'static [u32]) -> Table {
    Table {
        rows,
        entry,
        columns,
    }
}

/// In the order of the names.
const TABLES: &[Table] = &[
    table(
        Rows::LinkStatus,
        &[1, 3, 6, 1, 2, 1, 10, 23, 1, 1, 1, 1],
        &[1, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    ),
    table(
        Rows::IpStatus,
        &[1, 3, 6, 1, 2, 1, 10, 23, 3, 1, 1],
        &[1, 2, 3],
    ),
    table(
        Rows::L2tpConfig,
        &[1, 3, 6, 1, 2, 1, 10, 95, 1, 1, 1],
        &[1, 2],
    ),
    table(
        Rows::L2tpStats,
        &[1, 3, 6, 1, 2, 1, 10, 95, 1, 1, 2],
        &[1, 2, 3, 4],
    ),
    table(
        Rows::DomainConfig,
        &[1, 3, 6, 1, 2, 1, 10, 95, 1, 2, 1],
        &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    ),
    table(
        Rows::DomainStats,
        &[1, 3, 6, 1, 2, 1, 10, 95, 1, 3, 1],
        &[1, 2, 4, 5, 7, 8, 10, 12, 19, 21],
    ),
    table(
        Rows::TunnelConfig,
        &[1, 3, 6, 1, 2, 1, 10, 95, 1, 4, 1],
        &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    ),
    table(
        Rows::TunnelStats,
        &[1, 3, 6, 1, 2, 1, 10, 95, 1, 5, 1],
        &[1, 2, 3, 4, 5, 8, 9, 12, 16, 18, 19, 20, 21, 22, 26, 30],
    ),
    table(
        Rows::SessionStats,
        &[1, 3, 6, 1, 2, 1, 10, 95, 1, 7, 1],
        &[
            2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 23, 24,
        ],
    ),
    table(
        Rows::UdpStats,
        &[1, 3, 6, 1, 2, 1, 10, 95, 3, 1, 2, 1],
        &[2, 3],
    ),
    table(
        Rows::TunnelIf,
        &[1, 3, 6, 1, 2, 1, 10, 131, 1, 1, 1, 1],
        &[1, 2, 3, 5, 6, 8, 9, 10, 11],
    ),
    table(
        Rows::TunnelIds,
        &[1, 3, 6, 1, 2, 1, 10, 131, 1, 1, 2, 1],
        &[5, 6],
    ),
    table(
        Rows::TunnelInetIds,
        &[1, 3, 6, 1, 2, 1, 10, 131, 1, 1, 3, 1],
        &[6, 7, 8],
    ),
    table(Rows::BgpScalars, BGP, &[1, 2]),
    table(
        Rows::BgpPeers,
        &[1, 3, 6, 1, 2, 1, 15, 3, 1],
        &[
            1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20,
        ],
    ),
    table(Rows::BgpScalars, BGP, &[4]),
];

/// The objects.
pub(super) struct Mib {
    has_bgp: bool,
    peers: bgp::Peers,
    tunnels: tunnel::Ids,
}

impl Mib {
    pub(super) fn new(has_bgp: bool) -> Self {
        Self {
            has_bgp,
            peers: bgp::Peers::default(),
            tunnels: tunnel::Ids::default(),
        }
    }

    /// Frees what was kept for questions.
    pub(super) fn forget(&mut self) {
        self.peers = bgp::Peers::default();
        self.tunnels.forget();
    }

    /// Answers a question; `None` if the slice is over before.
    pub(super) fn answer(
        &mut self,
        question: Question<'_>,
        core: &Core,
        slice: Slice,
    ) -> Option<Answer> {
        let (Question::Get(name) | Question::Next { after: name, .. }) = question;
        if self.has_bgp && asks_for_peers(name.ids()) {
            let speaker = &core.routes.as_ref()?.speaker;
            if !self.peers.refresh(speaker, slice, core.now) {
                return None;
            }
        }
        if asks_for_ids(name.ids()) && !self.tunnels.refresh(core, slice) {
            return None;
        }
        Some(match question {
            Question::Get(name) => self.get(name.ids(), core),
            Question::Next { after, includes } => self.next(after.ids(), includes, core),
        })
    }

    fn get(&self, name: &[u32], core: &Core) -> Answer {
        let mut answer = Answer::NoObject;
        for table in self.tables() {
            let Some((column, index)) = name
                .strip_prefix(table.entry)
                .and_then(<[u32]>::split_first)
            else {
                continue;
            };
            if !table.columns.contains(column) {
                continue;
            }
            answer = Answer::NoInstance;
            let bound = Bound::at(table.rows.arity(core, index), index);
            let found = bound.and_then(|bound| self.row(table.rows, bound, *column, core));
            if let Some((found, value)) = found
                && found.ids() == index
            {
                return Answer::Value(value);
            }
        }
        answer
    }

    fn next(&self, after: &[u32], includes: bool, core: &Core) -> Answer {
        for table in self.tables() {
            let (mut column, mut suffix) = (0, None);
            if let Some(rest) = after.strip_prefix(table.entry) {
                if let Some((first, index)) = rest.split_first() {
                    column = table.columns.partition_point(|one| one < first);
                    suffix = (table.columns.get(column) == Some(first)).then_some(index);
                }
            } else if after > table.entry {
                continue;
            }
            for number in &table.columns[column..] {
                let bound = match suffix.take() {
                    Some(index) => Bound::after(table.rows.arity(core, index), index, includes),
                    None => Some(Bound::first(table.rows.arity(core, &[]))),
                };
                let found = bound.and_then(|bound| self.row(table.rows, bound, *number, core));
                let Some((index, value)) = found else {
                    continue;
                };
                let mut name = [0; 16 + INDEX_MAX];
                let start = table.entry.len();
                let end = start + 1 + index.ids().len();
                name[..start].copy_from_slice(table.entry);
                name[start] = *number;
                name[start + 1..end].copy_from_slice(index.ids());
                if let Some(name) = Oid::new(&name[..end]) {
                    return Answer::Variable(Variable { name, value });
                }
            }
        }
        Answer::End
    }

    fn tables(&self) -> impl Iterator<Item = &'static Table> {
        let has_bgp = self.has_bgp;
        let is_bgp = |rows| matches!(rows, Rows::BgpScalars | Rows::BgpPeers);
        TABLES
            .iter()
            .filter(move |table| has_bgp || !is_bgp(table.rows))
    }

    /// The first row that is not before `bound`, and its value in a column.
    fn row(&self, rows: Rows, bound: Bound, column: u32, core: &Core) -> Option<(Index, Value)> {
        let l2tp = || core.edge.endpoint().l2tp();
        match rows {
            Rows::L2tpConfig | Rows::L2tpStats => {
                let index = bound.single()?;
                Some((
                    index,
                    l2tp::scalar(l2tp(), rows == Rows::L2tpStats, column)?,
                ))
            }
            Rows::DomainConfig | Rows::DomainStats => {
                let index = bound.string(l2tp::domain(l2tp()))?;
                let value = match rows {
                    Rows::DomainConfig => l2tp::domain_config(l2tp(), column),
                    _ => l2tp::domain_stats(l2tp(), column),
                };
                Some((index, value?))
            }
            Rows::TunnelConfig | Rows::TunnelStats | Rows::UdpStats => {
                let (place, view) = l2tp().tunnel_from(bound.place(TUNNELS)?)?;
                let value = match rows {
                    Rows::TunnelConfig => l2tp::tunnel_config(l2tp(), &view, column),
                    Rows::TunnelStats => l2tp::tunnel_stats(&view, column),
                    _ => l2tp::udp_stats(core, &view, column),
                };
                Some((Index::of(&[TUNNELS + place]), value?))
            }
            Rows::TunnelIf => {
                let (place, view) = l2tp().any_tunnel_from(bound.place(TUNNELS)?)?;
                let value = tunnel::interface(core, &view, column)?;
                Some((Index::of(&[TUNNELS + place]), value))
            }
            Rows::TunnelIds | Rows::TunnelInetIds => {
                let is_inet = rows == Rows::TunnelInetIds;
                let (index, place) = self.tunnels.next_from(bound, is_inet)?;
                Some((index, tunnel::id(place, is_inet, column)?))
            }
            Rows::SessionStats => {
                let from = bound.place_and_id(TUNNELS)?;
                let ((place, id), view) = l2tp().session_from(from)?;
                let value = l2tp::session_stats(core, &view, column)?;
                Some((Index::of(&[TUNNELS + place, id]), value))
            }
            Rows::LinkStatus | Rows::IpStatus => {
                let (next, view) = core.edge.next_subscriber(bound.place(LINKS)?)?;
                let value = match rows {
                    Rows::LinkStatus => ppp::link_status(core, &view, column),
                    _ => ppp::ip_status(&view, column),
                };
                Some((Index::of(&[LINKS + (next - 1)]), value?))
            }
            Rows::BgpScalars => {
                let index = bound.single()?;
                Some((index, bgp::scalar(core, column)?))
            }
            Rows::BgpPeers => {
                let (address, peer) = self.peers.next_from(bound.address()?)?;
                let octets = address.octets().map(u32::from);
                Some((Index::of(&octets), bgp::peer(core, peer, column)?))
            }
        }
    }
}

/// Whether the answer may be a row of BGP's peers.
fn asks_for_peers(name: &[u32]) -> bool {
    let last = &[1, 3, 6, 1, 2, 1, 15, 4][..];
    name < last && name > L2TP
}

/// Whether the answer may be a row with the config id of a tunnel. A name before TUNNEL-MIB may have one as its next
/// name only if there is no tunnel, and then there is no such row either.
fn asks_for_ids(name: &[u32]) -> bool {
    let last = &[1, 3, 6, 1, 2, 1, 10, 131, 1, 1, 4][..];
    name >= TUNNEL && name < last
}

impl Rows {
    /// Sub-identifiers of an index that starts like `index`.
    fn arity(self, core: &Core, index: &[u32]) -> usize {
        match self {
            Self::TunnelIds => tunnel::ARITY,
            Self::TunnelInetIds => tunnel::inet_arity(index),
            Self::L2tpConfig | Self::L2tpStats | Self::BgpScalars => 1,
            Self::DomainConfig | Self::DomainStats => {
                1 + l2tp::domain(core.edge.endpoint().l2tp()).len()
            }
            Self::TunnelConfig
            | Self::TunnelStats
            | Self::UdpStats
            | Self::TunnelIf
            | Self::LinkStatus
            | Self::IpStatus => 1,
            Self::SessionStats => 2,
            Self::BgpPeers => 4,
        }
    }
}
