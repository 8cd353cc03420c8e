//! The picture of the street: who is connected to whom.

use plot::number::grouped;
use plot::sketch::{Arrow, Ink, Place};
use plot::{Block, Sketch};

use super::report::Report;

/// The labels of the boxes.
struct Words {
    street: [String; 2],
    bng: [String; 2],
    lns: [String; 2],
    tunnel: [String; 2],
}

impl Words {
    fn of(report: &Report) -> Self {
        let count = |number: u64| grouped(number as f64, 0);
        let [bng, lns] = report.subscribers;
        let nat = |at: usize| {
            let addresses = report.nats[at].external_addresses;
            let s = if addresses == 1 { "" } else { "es" };
            format!("NAT to {addresses} address{s}")
        };
        let s = if report.tunnels == 1 { "" } else { "s" };
        Self {
            street: [
                format!("{} hosts, PPPoE", count(report.up.into())),
                "IPv4, IPv6, a /56 each".into(),
            ],
            bng: [format!("{} lines end here", count(bng.own)), nat(0)],
            lns: [format!("{} lines end here", count(lns.own)), nat(1)],
            tunnel: [
                format!("{} L2TP tunnel{s}", report.tunnels),
                format!("{} sessions", count(report.sessions)),
            ],
        }
    }
}

/// The hosts, both daemons and the internet.
pub(super) fn drawing(report: &Report) -> Block {
    let words = Words::of(report);
    let about = "The hosts of the street reach an access concentrator by PPPoE. It forwards half of the lines to the \
                 internet, and hands the other half over to an LNS, which forwards them.";
    Block::Drawing {
        wide: wide(&words).finish((860.0, 212.0), about),
        narrow: narrow(&words).finish((420.0, 430.0), about),
    }
}

const BOTH: Arrow = Arrow {
    both: true,
    thick: false,
};
const THICK: Arrow = Arrow {
    both: true,
    thick: true,
};

/// The colours of lines that end at the access concentrator, and of lines that are handed over.
const COLOURS: [usize; 2] = [0, 1];

/// A row of houses in the colours of their lines.
fn houses(sketch: &mut Sketch, (x, y): (f64, f64)) {
    for house in 0..12 {
        let at = (x + 12.0 * f64::from(house), y);
        sketch.chip(at, (9.0, 9.0), COLOURS[house as usize % 2]);
    }
}

fn wide(words: &Words) -> Sketch {
    let mut sketch = Sketch::new();
    let [street, bng, lns] = [&words.street, &words.bng, &words.lns];
    sketch.rect(
        (10.0, 14.0),
        (190.0, 92.0),
        &["street", &street[0], &street[1]],
    );
    houses(&mut sketch, (33.0, 114.0));
    sketch.rect(
        (290.0, 22.0),
        (220.0, 76.0),
        &["access concentrator, LAC", &bng[0], &bng[1]],
    );
    sketch.chip((302.0, 56.0), (9.0, 9.0), COLOURS[0]);
    sketch.rect((290.0, 140.0), (220.0, 66.0), &["LNS", &lns[0], &lns[1]]);
    sketch.chip((302.0, 169.0), (9.0, 9.0), COLOURS[1]);
    sketch.rect(
        (680.0, 60.0),
        (170.0, 92.0),
        &["internet", "a server", "the RADIUS server"],
    );
    sketch.arrow((202.0, 60.0), (288.0, 60.0), THICK);
    sketch.text((245.0, 50.0), Place::Middle, Ink::Muted, "PPPoE");
    sketch.arrow((400.0, 100.0), (400.0, 138.0), THICK);
    let tunnel = words.tunnel.join(", ");
    sketch.text((412.0, 123.0), Place::Start, Ink::Muted, &tunnel);
    sketch.arrow((512.0, 60.0), (678.0, 90.0), BOTH);
    sketch.arrow((512.0, 173.0), (678.0, 122.0), BOTH);
    sketch
}

fn narrow(words: &Words) -> Sketch {
    let mut sketch = Sketch::new();
    let [street, bng, lns] = [&words.street, &words.bng, &words.lns];
    sketch.rect(
        (110.0, 8.0),
        (200.0, 78.0),
        &["street", &street[0], &street[1]],
    );
    houses(&mut sketch, (138.0, 92.0));
    sketch.rect(
        (10.0, 148.0),
        (230.0, 74.0),
        &["access concentrator, LAC", &bng[0], &bng[1]],
    );
    sketch.chip((22.0, 181.0), (9.0, 9.0), COLOURS[0]);
    sketch.rect((10.0, 268.0), (230.0, 66.0), &["LNS", &lns[0], &lns[1]]);
    sketch.chip((22.0, 297.0), (9.0, 9.0), COLOURS[1]);
    sketch.rect(
        (110.0, 372.0),
        (200.0, 52.0),
        &["internet", "a server, the RADIUS server"],
    );
    sketch.arrow((180.0, 106.0), (150.0, 146.0), THICK);
    sketch.text((178.0, 132.0), Place::Start, Ink::Muted, "PPPoE");
    sketch.arrow((70.0, 224.0), (70.0, 266.0), THICK);
    sketch.text((82.0, 242.0), Place::Start, Ink::Muted, &words.tunnel[0]);
    sketch.text((82.0, 258.0), Place::Start, Ink::Muted, &words.tunnel[1]);
    sketch.arrow((242.0, 186.0), (292.0, 370.0), BOTH);
    sketch.arrow((150.0, 336.0), (180.0, 370.0), BOTH);
    sketch
}
