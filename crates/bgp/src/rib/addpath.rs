//! Several paths of a prefix, with identifiers of our own: RFC 7911. Such a group is of one peer, so what was told is
//! what that peer knows, and nobody is served apart.
//!
//! An identifier stands for a peer and the identifier that it gave, so it is the same for as long as their route is
//! there, whatever becomes of its attributes.

use std::sync::Arc;

use hashbrown::HashMap;
use wire::bgp::Nlri;

use super::NONE;
use super::decision::Decision;
use super::dirty::Item;
use super::group::{Group, Scratch, World};
use super::queue::Mark;

/// Identifiers that were given out: by peer and received identifier.
pub(crate) type Identifiers = HashMap<(u32, u32), u32>;

impl Group {
    /// Takes a window of what is pending and writes what the peer is to be told of it. Gives how many places were
    /// looked at.
    pub(crate) fn flush_paths(
        &mut self,
        count: u16,
        prefers_oldest: bool,
        identifiers: &mut Identifiers,
        world: &mut World<'_>,
        scratch: &mut Scratch,
    ) -> usize {
        let family = self.family();
        let mut places = Vec::new();
        let best_of = |slot| world.tables.best(family, slot);
        self.pending.take(world.paths.end(), best_of, &mut places);
        let mut news: Vec<(u32, u32, u32)> = Vec::new();
        let mut gone: Vec<(u32, u32)> = Vec::new();
        for &Item { slot, .. } in &places {
            let wanted = self.wanted(slot, count, prefers_oldest, identifiers, world, scratch);
            let old = self.sent_paths.get(&slot).map_or(&[][..], Vec::as_slice);
            let is_in = |list: &[(u32, u32)], id: u32| list.iter().any(|other| other.0 == id);
            gone.extend(
                old.iter()
                    .filter(|sent| !is_in(&wanted, sent.0))
                    .map(|sent| (slot, sent.0)),
            );
            let is_other = |sent: &&(u32, u32)| self.old_export.is_some() || !old.contains(sent);
            news.extend(
                wanted
                    .iter()
                    .filter(is_other)
                    .map(|&(id, path)| (path, slot, id)),
            );
            self.set_sent_paths(slot, wanted, world);
        }
        news.sort_unstable();
        self.announce_paths(&news, world, scratch);
        self.withdraw_paths(&gone, world);
        self.queue.seal(self.attached);
        if self.pending.is_empty() {
            self.old_export = None;
        }
        places.len()
    }

    /// The paths that the peer is to know of a place, with their identifiers.
    fn wanted(
        &self,
        slot: u32,
        count: u16,
        prefers_oldest: bool,
        identifiers: &mut Identifiers,
        world: &World<'_>,
        scratch: &mut Scratch,
    ) -> Vec<(u32, u32)> {
        let Scratch { paths, left, .. } = scratch;
        paths.clear();
        world.tables.routes(self.family(), slot, paths);
        paths.retain(|&path| world.paths.get(path).is_eligible());
        let best = world.tables.best(self.family(), slot);
        let count = if count == 0 {
            paths.len()
        } else {
            count.into()
        };
        if count < paths.len() {
            let decision = Decision {
                attributes: world.attributes,
                paths: world.paths,
                peers: world.peers,
                prefers_oldest,
            };
            decision.rank(paths, best, left, count);
            paths.truncate(count);
        }
        let mut wanted = Vec::with_capacity(paths.len());
        for &id in paths.iter() {
            let path = world.paths.get(id);
            let is_own = self.members.contains(&path.peer());
            if is_own || !self.may_send(path, world.look()) {
                continue;
            }
            if self.judge(&self.export, path, slot, world.look()).is_some() {
                let next = identifiers.len() as u32 + 1;
                let key = (path.peer(), path.path_id);
                wanted.push((*identifiers.entry(key).or_insert(next), id));
            }
        }
        wanted
    }

    fn set_sent_paths(&mut self, slot: u32, wanted: Vec<(u32, u32)>, world: &mut World<'_>) {
        for &(_, path) in &wanted {
            world.paths.hold(path, 1);
        }
        self.sent_count += wanted.len() as u32;
        let old = if wanted.is_empty() {
            self.sent_paths.remove(&slot)
        } else {
            self.sent_paths.insert(slot, wanted)
        };
        for (_, path) in old.unwrap_or_default() {
            self.sent_count -= 1;
            world.paths.release(path, world.attributes);
        }
    }

    fn announce_paths(
        &mut self,
        news: &[(u32, u32, u32)],
        world: &mut World<'_>,
        scratch: &mut Scratch,
    ) {
        let family = self.family();
        let (writer, tables) = (self.writer(), world.tables);
        let export = Arc::clone(&self.export);
        for run in news.chunk_by(|a, b| a.0 == b.0) {
            let path = *world.paths.get(run[0].0);
            let mut judged: Vec<_> = run
                .iter()
                .filter_map(|&(_, slot, id)| {
                    Some((self.judge(&export, &path, slot, world.look())?, slot, id))
                })
                .collect();
            judged.sort_unstable();
            for same in judged.chunk_by(|a, b| a.0 == b.0) {
                let told = &mut scratch.told;
                let is_told = self.tell(&path, (&export, same[0].0), world.look(), told);
                let (Some(()), Some(next_hop)) = (is_told, told.next_hop) else {
                    world.counters.without_next_hop += same.len() as u64;
                    continue;
                };
                let routes = same.iter().map(|&(_, slot, path_id)| Nlri {
                    prefix: tables.prefix(family, slot),
                    path_id,
                });
                let slots = same.iter().map(|judged| judged.1);
                let mut fits = true;
                self.queue.append(self.attached, Mark::All, slots, |out| {
                    fits = writer
                        .announce(&told.attributes, next_hop, routes, out)
                        .is_ok();
                });
                if !fits {
                    world.counters.too_long += same.len() as u64;
                }
            }
        }
    }

    fn withdraw_paths(&mut self, gone: &[(u32, u32)], world: &World<'_>) {
        let family = self.family();
        let (writer, tables) = (self.writer(), world.tables);
        let routes = gone.iter().map(|&(slot, path_id)| Nlri {
            prefix: tables.prefix(family, slot),
            path_id,
        });
        let slots = gone.iter().map(|gone| gone.0);
        self.queue.append(self.attached, Mark::All, slots, |out| {
            writer.withdraw(family, routes, out);
        });
    }

    /// Forgets what was told, so that all is told again; withdrawals are not.
    pub(crate) fn forget_paths(&mut self, world: &mut World<'_>) {
        for (slot, paths) in std::mem::take(&mut self.sent_paths) {
            self.pending.insert(slot);
            for (_, path) in paths {
                self.sent_count -= 1;
                world.paths.release(path, world.attributes);
            }
        }
        debug_assert_eq!(self.sent.len(), 0, "{NONE}");
    }
}
