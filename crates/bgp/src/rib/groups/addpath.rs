//! Several paths of a prefix, with path identifiers of our own: RFC 7911. Such a group has one member, so that member
//! knows all that was advertised, and is never served apart.
//!
//! One of our identifiers stands for a peer and the identifier that the peer gave. It stays the same while the route
//! exists, even if the attributes change.

use std::sync::Arc;

use hashbrown::HashMap;
use wire::bgp::Nlri;

use super::group::{Context, Group, Scratch, flush_cost};
use super::queue::Mark;
use crate::rib::dirty::Item;
use crate::rib::store::Store;

/// The identifiers that were given out, by peer and received identifier.
pub(crate) type Identifiers = HashMap<(u32, u32), u32>;

impl Group {
    /// Takes a window of the pending slots, if it is found in this call, and writes the messages about them. Returns how
    /// much work that was, in slots.
    pub(crate) fn flush_paths(
        &mut self,
        count: u16,
        identifiers: &mut Identifiers,
        cx: &mut Context<'_>,
    ) -> usize {
        let family = self.family();
        let mut places = Vec::new();
        let best_of = |slot| cx.store.best_path(family, slot);
        let looked_at = self
            .pending
            .take(cx.store.paths_end(), best_of, &mut places);
        let mut news: Vec<(u32, u32, u32)> = Vec::new();
        let mut gone: Vec<(u32, u32)> = Vec::new();
        for &Item { slot, .. } in &places {
            let wanted = self.wanted(slot, count, identifiers, cx);
            let old = self.sent_paths.get(&slot).map_or(&[][..], Vec::as_slice);
            let is_in = |list: &[(u32, u32)], id: u32| list.iter().any(|other| other.0 == id);
            gone.extend(
                old.iter()
                    .filter(|sent| !is_in(&wanted, sent.0))
                    .map(|sent| (slot, sent.0)),
            );
            let sends_all = self.sends_again || self.old_export.is_some();
            let is_other = |sent: &&(u32, u32)| sends_all || !old.contains(sent);
            news.extend(
                wanted
                    .iter()
                    .filter(is_other)
                    .map(|&(id, path)| (path, slot, id)),
            );
            self.set_sent_paths(slot, wanted, cx);
        }
        news.sort_unstable();
        self.announce_paths(&news, cx);
        self.withdraw_paths(&gone, cx.store);
        self.queue.seal(self.attached);
        if self.pending.is_empty() && self.unmarked.is_none() {
            self.old_export = None;
            self.sends_again = false;
        }
        flush_cost(places.len(), looked_at)
    }

    /// The paths that the peer is to have for a slot, with their identifiers.
    fn wanted(
        &self,
        slot: u32,
        count: u16,
        identifiers: &mut Identifiers,
        cx: &mut Context<'_>,
    ) -> Vec<(u32, u32)> {
        let Scratch { paths, left, .. } = &mut *cx.scratch;
        let store = &*cx.store;
        store.rank((self.family(), slot), count, paths, left);
        let mut wanted = Vec::with_capacity(paths.len());
        for &id in paths.iter() {
            let path = store.path(id);
            let is_own = self.members.contains(&path.peer());
            if is_own || !self.may_send(path, store) {
                continue;
            }
            if self.judge(&self.export, path, slot, store).is_some() {
                let next = identifiers.len() as u32 + 1;
                let key = (path.peer(), path.path_id);
                wanted.push((*identifiers.entry(key).or_insert(next), id));
            }
        }
        wanted
    }

    fn set_sent_paths(&mut self, slot: u32, wanted: Vec<(u32, u32)>, cx: &mut Context<'_>) {
        for &(_, path) in &wanted {
            cx.store.hold(path, 1);
        }
        self.sent_count += wanted.len() as u32;
        let old = if wanted.is_empty() {
            self.sent_paths.remove(&slot)
        } else {
            self.sent_paths.insert(slot, wanted)
        };
        for (_, path) in old.unwrap_or_default() {
            self.sent_count -= 1;
            cx.store.release(path);
        }
    }

    fn announce_paths(&mut self, news: &[(u32, u32, u32)], cx: &mut Context<'_>) {
        let family = self.family();
        let (writer, store) = (self.writer(), &*cx.store);
        let export = Arc::clone(&self.export);
        for run in news.chunk_by(|a, b| a.0 == b.0) {
            let path = *store.path(run[0].0);
            let mut judged: Vec<_> = run
                .iter()
                .filter_map(|&(_, slot, id)| {
                    Some((self.judge(&export, &path, slot, store)?, slot, id))
                })
                .collect();
            judged.sort_unstable();
            for same in judged.chunk_by(|a, b| a.0 == b.0) {
                let encoded = &mut cx.scratch.encoded;
                let edits = (&*export, same[0].0);
                let Some(next_hop) = self.outward.encode(&path, store, edits, encoded) else {
                    cx.counters.without_next_hop += same.len() as u64;
                    continue;
                };
                let routes = same.iter().map(|&(_, slot, path_id)| Nlri {
                    prefix: store.prefix(family, slot),
                    path_id,
                });
                let slots = same.iter().map(|judged| judged.1);
                let mut fits = true;
                self.queue.append(self.attached, Mark::All, slots, |out| {
                    fits = writer.announce(encoded, next_hop, routes, out).is_ok();
                });
                if !fits {
                    cx.counters.too_long += same.len() as u64;
                }
            }
        }
    }

    fn withdraw_paths(&mut self, gone: &[(u32, u32)], store: &Store) {
        let family = self.family();
        let writer = self.writer();
        let routes = gone.iter().map(|&(slot, path_id)| Nlri {
            prefix: store.prefix(family, slot),
            path_id,
        });
        let slots = gone.iter().map(|gone| gone.0);
        self.queue.append(self.attached, Mark::All, slots, |out| {
            writer.withdraw(family, routes, out);
        });
    }
}
