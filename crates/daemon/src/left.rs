//! The first thread's part in what packet threads do not handle: link frames, packets for sessions that they do not
//! know, and reports.

use std::io;

use super::core::Core;
use super::events;
use super::shards::{Batch, PART};
use super::sockets::Outside;

/// Handles batches of the packet threads, up to one turn's share.
///
/// # Errors
/// A thread has ended.
pub(super) fn work(core: &mut Core) -> io::Result<()> {
    core.shards.begin_turn();
    let applied = core.shards.applied();
    take_handovers(core);
    let mut taken = 0;
    while taken < PART
        && let Some(batch) = core.shards.next_batch()
    {
        take(&batch, core);
        taken += 1;
    }
    core.shards.end_turn(taken)?;
    if let Some(applied) = applied {
        core.edge.applied(applied, core.now);
    }
    Ok(())
}

/// Takes packets for queues on this thread. While queues move, it takes all: none may be older than an applied change.
fn take_handovers(core: &mut Core) {
    let Core {
        edge,
        inside,
        sockets,
        ports,
        reactor,
        shards,
        now,
        ..
    } = core;
    let all = edge.is_moving();
    shards.take_handovers(all, |batch| {
        edge.take_handover(
            batch,
            *now,
            &mut Outside {
                sockets,
                ports,
                reactor,
            },
            inside,
        );
    });
}

fn take(batch: &Batch, core: &mut Core) {
    let Core {
        edge,
        inside,
        sockets,
        ports,
        reactor,
        translation,
        now,
        ..
    } = core;
    if let Some(translation) = translation {
        translation.take(&batch.nat, edge);
    }
    for (route, bytes) in batch.datagrams() {
        edge.receive_left(route, bytes, *now, inside);
    }
    for mut packet in batch.packets() {
        edge.forward(
            &mut packet,
            *now,
            &mut Outside {
                sockets,
                ports,
                reactor,
            },
        );
    }
    inside.tell(edge);
    for &session in &batch.heard {
        edge.heard(session, *now);
    }
    for (tapped, octets) in batch.tapped() {
        edge.take_tapped(tapped, octets);
    }
    for &(tap, lost) in &batch.lost {
        edge.take_lost(tap, lost);
    }
    for logged in &batch.logged {
        events::log_packet(logged, core);
    }
}

/// Takes what packet threads have reported about the translation and this thread has not taken before they ended.
pub(super) fn take_last(core: &mut Core) {
    while let Some(batch) = core.shards.next_batch() {
        if let Some(translation) = &mut core.translation {
            translation.take(&batch.nat, &core.edge);
        }
    }
}
