//! The report: one HTML file with its pictures inside.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::claims::{Case, Grid, Outcome, Part, Place, Section, Source};

/// The content above the sections.
pub(super) struct Heading<'a> {
    pub(super) title: &'a str,
    /// Name and value: the machine, the version, the command line.
    pub(super) facts: &'a [(&'a str, String)],
    /// Limits of the whole reproduction.
    pub(super) remarks: &'a [String],
}

const STYLE: &str = "\
body{font:16px/1.5 system-ui,sans-serif;color:#222;background:#fff;max-width:72rem;margin:2rem auto;\
padding:0 1rem}h1{font-size:1.7rem;line-height:1.25}h2{font-size:1.3rem;margin-top:2.5rem;\
border-top:1px solid #ccc;padding-top:1rem}h3,summary{font-size:1rem;font-weight:600;\
margin:1rem 0 .3rem}summary{cursor:pointer}.scroll{overflow-x:auto}nav a{display:block}\
table{border-collapse:collapse;margin:.5rem 0 1.2rem;font-size:.875rem;line-height:1.4}\
th,td{padding:.25rem .6rem;border-bottom:1px solid #ddd;vertical-align:top;text-align:left}\
th.n,td.n{text-align:right;font-variant-numeric:tabular-nums}td.n{white-space:nowrap}\
th{border-bottom:2px solid #999;vertical-align:bottom}td.place{white-space:nowrap}\
b.holds,b.part,b.fails,b.open{display:inline-block;padding:0 .5rem;border-radius:.6rem;white-space:nowrap}\
.holds{color:#0a5a26;background:#dff3e4}.part{color:#6b4700;background:#fdf0cf}\
.fails{color:#8e1414;background:#fbe0e0}.open{color:#444;background:#e8e8e8}.why{display:block;color:#555}\
.case{display:block}.case i{font-style:normal;padding:0 .3rem;border-radius:.4rem}\
.source{display:block;font-size:.8rem}tr.claim td{border-top:2px solid #bbb}\
tr:target td,h3:target{background:#fff7d6}table.claims td,table.claims th{padding:.25rem .45rem}\
table.claims td:last-child{min-width:17rem}table.claims details summary{margin:0;font-weight:400;font-size:inherit}\
figure{margin:.5rem 0}figure svg{max-width:100%;height:auto}\
figcaption{font-size:.875rem;color:#555;max-width:48rem}dl{display:grid;\
grid-template-columns:max-content 1fr;gap:.1rem 1rem;font-size:.9rem}dt{color:#666}\
dd{margin:0;overflow-wrap:anywhere}";

/// A comparison with more cases has them in a list that the reader opens.
const SHOWN_CASES: usize = 4;

/// Tables with more rows are collapsed until the reader opens them.
const LONG_GRID_ROWS: usize = 16;

/// Writes the report. `captions` has texts below pictures, by name; `picture` returns the
/// SVG with a given name.
pub(super) fn report<E>(
    heading: &Heading<'_>,
    sections: &[Section],
    captions: &BTreeMap<String, String>,
    mut picture: impl FnMut(&str) -> Result<String, E>,
) -> Result<String, E> {
    let mut page = String::new();
    let title = escaped(heading.title);
    page.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    let _ = writeln!(
        page,
        "<title>{title}</title>\n<style>{STYLE}</style>\n</head>"
    );
    let _ = writeln!(page, "<body>\n<h1>{title}</h1>\n<dl>");
    for (name, value) in heading.facts {
        let _ = writeln!(
            page,
            "<dt>{}</dt><dd>{}</dd>",
            escaped(name),
            escaped(value)
        );
    }
    page.push_str("</dl>\n");
    for remark in heading.remarks {
        let _ = writeln!(page, "<p>{}</p>", escaped(remark));
    }
    let _ = writeln!(page, "<h2>Claims</h2>\n<p>{}</p>", summary(sections));
    claims(&mut page, sections);
    page.push_str("<nav>");
    for (number, section) in sections.iter().enumerate() {
        let title = escaped(&section.title);
        let _ = write!(page, "<a href=\"#section{number}\">{title}</a> ");
    }
    page.push_str("</nav>\n");
    for (number, section) in sections.iter().enumerate() {
        let title = escaped(&section.title);
        let _ = writeln!(page, "<h2 id=\"section{number}\">{title}</h2>");
        let _ = writeln!(page, "<p>{}</p>", escaped(&section.method));
        for (index, name) in section.pictures.iter().enumerate() {
            let svg = picture(name)?;
            let caption = captions.get(name).map_or(String::new(), |text| {
                format!("<figcaption>{}</figcaption>\n", escaped(text))
            });
            let _ = writeln!(
                page,
                "<figure id=\"section{number}picture{index}\">\n{}\n{caption}</figure>",
                inline(&svg)
            );
        }
        for (index, rows) in section.grids.iter().enumerate() {
            grid(&mut page, rows, &format!("section{number}grid{index}"));
        }
    }
    page.push_str("</body>\n</html>\n");
    Ok(page)
}

/// Returns the numbers of claims by verdict, as HTML.
fn summary(sections: &[Section]) -> String {
    let verdicts = || {
        let claims = sections.iter().flat_map(|section| &section.claims);
        claims.map(|claim| claim.verdict().class())
    };
    let count = |wanted: &str| verdicts().filter(|class| *class == wanted).count();
    format!(
        "Of {} claims, <b class=\"holds\">{} hold</b> <b class=\"part\">{} hold in part</b> \
         <b class=\"fails\">{} do not hold here</b> <b class=\"open\">{} not measured</b>. A claim \
         is the paper's, in our words; what was measured is on the machine above, with our \
         implementations. A value is the median of its n samples, with the 90 % confidence \
         interval of the median in brackets; a value without an interval is a count that is the \
         same in every run. A case holds if its whole interval is on the claim's side of the \
         threshold, and is open if the interval contains the threshold or nothing was measured. A \
         claim holds if all its cases hold, holds in part if half of them do, and does not hold if \
         fewer do, whatever the open ones are; else it is not measured.",
        verdicts().count(),
        count("holds"),
        count("part"),
        count("fails"),
        count("open")
    )
}

fn claims(page: &mut String, sections: &[Section]) {
    page.push_str("<div class=\"scroll\"><table class=\"claims\">\n<tr><th>where</th>");
    page.push_str("<th>the paper</th><th>verdict</th><th>compared</th>");
    page.push_str("<th class=\"n\">paper</th><th>threshold</th><th>measured here</th></tr>\n");
    for (number, section) in sections.iter().enumerate() {
        for claim in &section.claims {
            let verdict = claim.verdict();
            let rows = claim.parts().len().max(1);
            let _ = write!(
                page,
                "<tr class=\"claim\"><td class=\"place\" rowspan=\"{rows}\">\
                 <a href=\"#section{number}\">{}</a></td><td rowspan=\"{rows}\">{}</td>\
                 <td rowspan=\"{rows}\"><b class=\"{}\">{}</b><span class=\"why\">{}</span></td>",
                escaped(claim.place),
                escaped(claim.paper),
                verdict.class(),
                verdict.word(),
                verdict.count_text()
            );
            for (index, part) in claim.parts().iter().enumerate() {
                if index > 0 {
                    page.push_str("<tr>");
                }
                let _ = writeln!(
                    page,
                    "<td>{}</td><td class=\"n\">{}</td><td>{}</td><td>{}{}</td></tr>",
                    escaped(part.compared()),
                    escaped(&part.paper_text()),
                    escaped(&part.threshold_text()),
                    measured(part),
                    links(part, number, section)
                );
            }
            if claim.parts().is_empty() {
                page.push_str("<td colspan=\"4\">nothing was compared</td></tr>\n");
            }
        }
    }
    page.push_str("</table></div>\n");
}

/// Returns the measured values of a comparison as HTML: all of few cases, and a list that
/// the reader opens for more.
fn measured(part: &Part) -> String {
    let line = |(case, outcome): (&Case, Outcome)| {
        let name = match case.name() {
            "" => String::new(),
            name => format!("{}: ", escaped(name)),
        };
        format!(
            "<span class=\"case\">{name}{}, <i class=\"{}\">{}</i></span>",
            escaped(&case.text()),
            match outcome {
                Outcome::Holds => "holds",
                Outcome::Fails => "fails",
                Outcome::Open => "open",
            },
            outcome.word()
        )
    };
    let lines: Vec<String> = part.outcomes().map(line).collect();
    if lines.len() <= SHOWN_CASES {
        return lines.concat();
    }
    let count = |wanted: Outcome| part.outcomes().filter(|one| one.1 == wanted).count();
    format!(
        "<details><summary>{} cases: {} hold, {} do not, {} open</summary>{}</details>",
        lines.len(),
        count(Outcome::Holds),
        count(Outcome::Fails),
        count(Outcome::Open),
        lines.concat()
    )
}

/// Returns links to the measurements of a comparison, as HTML.
fn links(part: &Part, number: usize, section: &Section) -> String {
    let link = |source: &Source| {
        let place = section.place_of(source);
        debug_assert!(place.is_some(), "no such measurement: {source:?}");
        let text = match source.row.as_str() {
            "" => escaped(&source.title),
            row => format!("{}, {}", escaped(&source.title), escaped(row)),
        };
        let anchor = match place {
            Some(Place::Grid(grid, None)) => format!("section{number}grid{grid}"),
            Some(Place::Grid(grid, Some(row))) => format!("section{number}grid{grid}row{row}"),
            Some(Place::Picture(picture)) => format!("section{number}picture{picture}"),
            None => format!("section{number}"),
        };
        format!(" <a class=\"source\" href=\"#{anchor}\">{text}</a>")
    };
    part.sources().iter().map(link).collect()
}

fn grid(page: &mut String, grid: &Grid, id: &str) {
    let title = escaped(&grid.title);
    let long = grid.rows.len() > LONG_GRID_ROWS;
    let _ = match long {
        true => writeln!(
            page,
            "<details id=\"{id}\"><summary>{title} ({} rows)</summary>",
            grid.rows.len()
        ),
        false => writeln!(page, "<h3 id=\"{id}\">{title}</h3>"),
    };
    page.push_str("<div class=\"scroll\"><table>\n");
    let mut row = |cells: &[String], tag: &str, id: &str| {
        let _ = write!(page, "<tr{id}>");
        for (index, cell) in cells.iter().enumerate() {
            let class = if index < grid.words {
                ""
            } else {
                " class=\"n\""
            };
            let _ = write!(page, "<{tag}{class}>{}</{tag}>", escaped(cell));
        }
        page.push_str("</tr>\n");
    };
    row(&grid.columns, "th", "");
    for (index, cells) in grid.rows.iter().enumerate() {
        row(cells, "td", &format!(" id=\"{id}row{index}\""));
    }
    page.push_str("</table></div>\n");
    if long {
        page.push_str("</details>\n");
    }
}

/// Returns the text of a picture from its `svg` element to the end.
fn inline(svg: &str) -> &str {
    svg.find("<svg")
        .map_or(svg, |start| &svg[start..])
        .trim_end()
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::claims::{Claim, Threshold};
    use super::*;

    #[test]
    fn text_from_outside_stays_text() {
        let section = Section {
            title: "a < b".to_owned(),
            method: "x & y".to_owned(),
            claims: vec![
                Claim::new("Fig. 1", "<b>faster</b>")
                    .part(
                        Part::new("a & b", Threshold::Above(1.0))
                            .paper(2.0)
                            .case(Case::exact("<c>", 3.0))
                            .grid("g", "<i>")
                            .picture("p.svg"),
                    )
                    .part(
                        Part::new("many", Threshold::AtMost(1.0))
                            .cases((0..5).map(|_| Case::exact("", 3.0))),
                    ),
                Claim::new("Fig. 2", "smaller"),
            ],
            grids: vec![Grid {
                title: "g".to_owned(),
                columns: vec!["name".to_owned(), "n".to_owned()],
                words: 1,
                rows: vec![vec!["<i>".to_owned(), "1".to_owned()]],
            }],
            pictures: vec!["p.svg".to_owned(), "q.svg".to_owned()],
        };
        let captions = [("q.svg".to_owned(), "p < q".to_owned())].into();
        let heading = Heading {
            title: "T & U",
            facts: &[("command", "classyard 'a<b'".to_owned())],
            remarks: &[],
        };
        let picture = |name: &str| -> Result<String, ()> {
            assert!(["p.svg", "q.svg"].contains(&name));
            Ok("<?xml version=\"1.0\"?>\n<svg width=\"1\"></svg>\n".to_owned())
        };
        let page = report(&heading, &[section], &captions, picture).unwrap();
        for part in [
            "<h1>T &amp; U</h1>",
            "classyard 'a&lt;b'",
            "a &lt; b",
            "x &amp; y",
            "&lt;b&gt;faster&lt;/b&gt;",
            "1 do not hold here",
            "1 not measured",
            "<td rowspan=\"2\"><b class=\"fails\">does not hold here</b><span class=\"why\">1 hold, 5 \
             do not, 0 open</span></td><td>a &amp; b</td><td class=\"n\">2</td><td>above 1</td>",
            "<span class=\"case\">&lt;c&gt;: 3, <i class=\"holds\">holds</i></span>",
            "<a class=\"source\" href=\"#section0grid0row0\">g, &lt;i&gt;</a>",
            "<a class=\"source\" href=\"#section0picture0\">p.svg</a>",
            "<summary>5 cases: 0 hold, 5 do not, 0 open</summary>",
            "<td colspan=\"4\">nothing was compared</td>",
            "<tr id=\"section0grid0row0\"><td>&lt;i&gt;</td><td class=\"n\">1</td>",
            "<h2 id=\"section0\">a &lt; b</h2>",
            "<figure id=\"section0picture0\">\n<svg width=\"1\"></svg>\n</figure>",
            "<svg width=\"1\"></svg>\n<figcaption>p &lt; q</figcaption>\n</figure>",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("<?xml"));
    }
}
