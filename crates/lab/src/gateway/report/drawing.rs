//! The drawing at the top of the page: hosts, gateway, queue and link, and one sentence with the
//! run's figures.

use plot::sketch::{Arrow, Ink, Place};
use plot::{Block, Sketch};

use super::super::outcome::{Outcome, RowOutcome};
use super::super::rows::{Load, Result, Row};

/// B's ping without and with the policy, for the first load with both measured.
pub(super) fn sentence(outcome: &Outcome) -> Option<String> {
    let find = |load, shaped| {
        let is = |row: &Row| row.load == load && row.shaped == shaped;
        let row = outcome.rows.iter().find(|row| is(&row.row))?;
        row.mean(|run: &Result| run.ping_percentile_ms(0.5))
    };
    let pair = |load| Some((load, find(load, false)?, find(load, true)?));
    let (load, without, with) = pair(Load::Bulk).or_else(|| pair(Load::Flood))?;
    let does = match load {
        Load::Flood => "while A floods the link",
        Load::Bulk | Load::None => "while A uploads",
    };
    let place = outcome.place;
    if outcome.compares() {
        let is = |row: &&RowOutcome| row.row.load == load && row.row.shaped;
        let each = outcome.rows.iter().filter(is).map(|row| {
            let ping = row.mean(|run: &Result| run.ping_percentile_ms(0.5));
            let ping = ping.map_or("-".to_owned(), |ms| plot::number::grouped(ms, 0));
            format!("{ping} ms by {}", row.engine.unwrap_or_default())
        });
        let each: Vec<String> = each.collect();
        return Some(format!(
            "B's ping {does}: {} ms without the policy, {} (medians, {place}).",
            plot::number::grouped(without, 0),
            each.join(", ")
        ));
    }
    let load = does;
    Some(format!(
        "B's ping {load}: {} ms without the policy, {} ms with it (medians, {place}).",
        plot::number::grouped(without, 0),
        plot::number::grouped(with, 0),
    ))
}

/// A queue of packets: most of them A's, few of them B's.
fn queue(drawing: &mut Sketch, (x, y): (f64, f64)) {
    for (i, colour) in (0..10).map(|i| (i, if i % 4 == 2 { 2 } else { 1 })) {
        drawing.chip((x + 12.0 * f64::from(i), y), (9.0, 22.0), colour);
    }
}

/// The labels of the drawing.
struct Words {
    link: [String; 2],
    queue: [String; 2],
    a: String,
}

impl Words {
    fn of(outcome: &Outcome) -> Self {
        let link = outcome.link;
        let mbit = |bps: u64| plot::number::short(bps as f64 / 1e6);
        // A frame of 1,514 bytes, as for a full TCP segment.
        let full_ms = link.fifo_packets as f64 * 1514.0 * 8.0 / link.up_bps as f64 * 1e3;
        let does = |row: &RowOutcome| {
            (row.row.load != Load::None).then(|| super::load_words(row.row.load))
        };
        let mut loads: Vec<&str> = outcome.rows.iter().filter_map(does).collect();
        loads.dedup();
        Self {
            link: [
                format!(
                    "{} Mbit/s up, {} down",
                    mbit(link.up_bps),
                    mbit(link.down_bps)
                ),
                format!(
                    "{} ms each way",
                    plot::number::short(link.delay_ns as f64 / 1e6)
                ),
            ],
            queue: [
                format!(
                    "without: FIFO, {} packets, {full_ms:.0} ms",
                    link.fifo_packets
                ),
                format!("with: {}", outcome.treatment),
            ],
            a: if loads.is_empty() {
                "uploads".to_owned()
            } else {
                loads.join(" or ")
            },
        }
    }
}

/// The hosts, the gateway with its queue, and the link.
pub(super) fn drawing(outcome: &Outcome) -> Block {
    let words = Words::of(outcome);
    let about =
        "Hosts A and B send through the queue of one gateway over a slow link to the far side.";
    Block::Drawing {
        wide: wide(&words).finish((860.0, 190.0), about),
        narrow: narrow(&words).finish((420.0, 360.0), about),
    }
}

fn wide(words: &Words) -> Sketch {
    let mut drawing = Sketch::new();
    drawing.rect((10.0, 14.0), (190.0, 62.0), &["host A", &words.a]);
    drawing.rect(
        (10.0, 108.0),
        (190.0, 62.0),
        &["host B", "pings, 200 kbit/s, pages"],
    );
    drawing.rect((270.0, 14.0), (250.0, 156.0), &[]);
    drawing.text((395.0, 38.0), Place::Middle, Ink::Strong, "gateway");
    queue(&mut drawing, (336.0, 58.0));
    drawing.text(
        (395.0, 108.0),
        Place::Middle,
        Ink::Muted,
        "queue towards the link",
    );
    drawing.text((395.0, 130.0), Place::Middle, Ink::Muted, &words.queue[0]);
    drawing.text((395.0, 149.0), Place::Middle, Ink::Muted, &words.queue[1]);
    drawing.rect((730.0, 54.0), (120.0, 76.0), &["far side", "replies"]);
    drawing.arrow(
        (200.0, 45.0),
        (268.0, 75.0),
        Arrow {
            both: false,
            thick: true,
        },
    );
    drawing.arrow(
        (200.0, 139.0),
        (268.0, 109.0),
        Arrow {
            both: true,
            thick: false,
        },
    );
    drawing.arrow(
        (522.0, 92.0),
        (728.0, 92.0),
        Arrow {
            both: true,
            thick: true,
        },
    );
    drawing.text((625.0, 78.0), Place::Middle, Ink::Muted, &words.link[0]);
    drawing.text((625.0, 114.0), Place::Middle, Ink::Muted, &words.link[1]);
    drawing
}

fn narrow(words: &Words) -> Sketch {
    let mut drawing = Sketch::new();
    drawing.rect((4.0, 8.0), (222.0, 58.0), &["host A", &words.a]);
    drawing.rect(
        (236.0, 8.0),
        (180.0, 58.0),
        &["host B", "pings, 200 kbit/s, pages"],
    );
    drawing.rect((70.0, 106.0), (280.0, 130.0), &[]);
    drawing.text((210.0, 126.0), Place::Middle, Ink::Strong, "gateway");
    queue(&mut drawing, (151.0, 138.0));
    drawing.text(
        (210.0, 180.0),
        Place::Middle,
        Ink::Muted,
        "queue towards the link",
    );
    drawing.text((210.0, 200.0), Place::Middle, Ink::Muted, &words.queue[0]);
    drawing.text((210.0, 219.0), Place::Middle, Ink::Muted, &words.queue[1]);
    drawing.rect((130.0, 296.0), (160.0, 56.0), &["far side", "replies"]);
    drawing.arrow(
        (115.0, 66.0),
        (160.0, 104.0),
        Arrow {
            both: false,
            thick: true,
        },
    );
    drawing.arrow(
        (326.0, 66.0),
        (262.0, 104.0),
        Arrow {
            both: true,
            thick: false,
        },
    );
    drawing.arrow(
        (210.0, 238.0),
        (210.0, 294.0),
        Arrow {
            both: true,
            thick: true,
        },
    );
    drawing.text((222.0, 262.0), Place::Start, Ink::Muted, &words.link[0]);
    drawing.text((222.0, 280.0), Place::Start, Ink::Muted, &words.link[1]);
    drawing
}
