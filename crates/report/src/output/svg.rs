//! Pictures: a small SVG writer, with the colours and fonts that all pictures
//! share.
//!
//! Pictures are self-contained: no scripts, and no external fonts or styles.

use std::fmt::Write as _;

/// The colour of text.
pub const INK: &str = "#1f2933";

/// The colour of secondary text.
pub const FAINT: &str = "#7b8794";

/// The colour of lines and of empty cells.
pub const PALE: &str = "#eef2f6";

/// The colour of bars and points.
pub const BLUE: &str = "#2b6cb0";

/// A second colour next to [`BLUE`].
pub const ORANGE: &str = "#dd6b20";

/// Colours from low to high shares.
const RAMP: [(f64, [f64; 3]); 5] = [
    (0.0, [205.0, 223.0, 241.0]),
    (0.3, [158.0, 202.0, 225.0]),
    (0.6, [66.0, 146.0, 198.0]),
    (0.85, [8.0, 81.0, 156.0]),
    (1.0, [8.0, 38.0, 84.0]),
];

/// The position of a text relative to its point.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    /// The point is at its start.
    Start,
    /// The point is in its middle.
    Middle,
    /// The point is at its end.
    End,
}

/// A picture under construction.
pub struct Svg {
    body: String,
    width: f64,
    height: f64,
}

impl Svg {
    /// Creates an empty picture of this size.
    pub fn new(width: f64, height: f64) -> Svg {
        Svg {
            body: String::new(),
            width,
            height,
        }
    }

    /// Draws a filled rectangle. A `tip` is shown when the pointer is on it.
    pub fn rect(&mut self, at: (f64, f64), size: (f64, f64), fill: &str, tip: &str) {
        let (x, y) = at;
        let (width, height) = size;
        self.push(format_args!(
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{:.2}\" height=\"{:.2}\" fill=\"{fill}\"",
            width.max(0.0),
            height.max(0.0)
        ));
        if tip.is_empty() {
            self.push(format_args!("/>\n"));
        } else {
            self.push(format_args!("><title>{}</title></rect>\n", escape(tip)));
        }
    }

    /// Draws a thin line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str) {
        self.push(format_args!(
            "<line x1=\"{:.2}\" y1=\"{:.2}\" x2=\"{:.2}\" y2=\"{:.2}\" stroke=\"{colour}\"/>\n",
            from.0, from.1, to.0, to.1
        ));
    }

    /// Draws a line through points.
    pub fn path(&mut self, points: &[(f64, f64)], colour: &str) {
        let mut text = String::new();
        for (x, y) in points {
            // Writing to a String cannot fail.
            let _ = write!(text, "{x:.2},{y:.2} ");
        }
        self.push(format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
             stroke-linejoin=\"round\"/>\n",
            text.trim_end()
        ));
    }

    /// Draws a text of `size` pixels.
    pub fn text(&mut self, at: (f64, f64), size: f64, anchor: Anchor, colour: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.push(format_args!(
            "<text x=\"{:.2}\" y=\"{:.2}\" font-size=\"{size}\" text-anchor=\"{anchor}\" \
             fill=\"{colour}\">{}</text>\n",
            at.0,
            at.1,
            escape(text)
        ));
    }

    /// Draws a bold text that starts at a point.
    pub fn title(&mut self, at: (f64, f64), size: f64, text: &str) {
        self.push(format_args!(
            "<text x=\"{:.2}\" y=\"{:.2}\" font-size=\"{size}\" font-weight=\"600\" \
             fill=\"{INK}\">{}</text>\n",
            at.0,
            at.1,
            escape(text)
        ));
    }

    /// Draws a text that runs upwards, centred on a point.
    pub fn upward(&mut self, at: (f64, f64), size: f64, colour: &str, text: &str) {
        self.push(format_args!(
            "<text transform=\"translate({:.2} {:.2}) rotate(-90)\" font-size=\"{size}\" \
             text-anchor=\"middle\" fill=\"{colour}\">{}</text>\n",
            at.0,
            at.1,
            escape(text)
        ));
    }

    /// Returns the picture as an SVG file.
    pub fn finish(self) -> String {
        let Svg {
            body,
            width,
            height,
        } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" \
             font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
        )
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.body.write_fmt(text);
    }
}

/// Returns the colour of a share from 0 to 1.
pub fn ramp(share: f64) -> String {
    let share = share.clamp(0.0, 1.0);
    let upper = RAMP
        .iter()
        .position(|&(at, _)| share <= at)
        .unwrap_or(0)
        .max(1);
    let ((low, from), (high, to)) = (RAMP[upper - 1], RAMP[upper]);
    let part = (share - low) / (high - low);
    let mix = |index: usize| from[index] + (to[index] - from[index]) * part;
    format!("rgb({:.0},{:.0},{:.0})", mix(0), mix(1), mix(2))
}

/// True if text on this colour of the ramp has to be light.
pub fn is_dark(share: f64) -> bool {
    share > 0.55
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_out() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.title((0.0, 0.0), 10.0, "<script> & \"x\"\u{7}");
        let text = svg.finish();
        assert!(
            text.contains("&lt;script&gt; &amp; &quot;x&quot; <"),
            "{text}"
        );
    }

    #[test]
    fn the_ramp_runs_from_light_to_dark() {
        assert_eq!(ramp(0.0), "rgb(205,223,241)");
        assert_eq!(ramp(1.0), "rgb(8,38,84)");
        assert_eq!(ramp(0.3), "rgb(158,202,225)");
    }
}
