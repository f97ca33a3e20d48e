//! The report: one HTML file with its pictures inside.

use std::fmt::Write as _;

use super::claims::{Grid, Section, Verdict};

/// What stands above the sections.
pub(super) struct Heading<'a> {
    pub(super) title: &'a str,
    /// Name and value: the machine, the version, the command line.
    pub(super) facts: &'a [(&'a str, String)],
    /// What limits the whole reproduction.
    pub(super) remarks: &'a [String],
}

const STYLE: &str = "\
body{font:16px/1.5 system-ui,sans-serif;color:#222;background:#fff;max-width:66rem;margin:2rem auto;\
padding:0 1rem}h1{font-size:1.7rem}h2{font-size:1.3rem;margin-top:2.5rem;border-top:1px solid #ccc;\
padding-top:1rem}h3{font-size:1rem;margin-bottom:.3rem}.scroll{overflow-x:auto}\
table{border-collapse:collapse;margin:.5rem 0 1.2rem;font-size:.9rem}\
th,td{padding:.25rem .7rem;border-bottom:1px solid #ddd;vertical-align:top;text-align:left}\
th.n,td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\
th{border-bottom:2px solid #999}.holds{color:#0a6b2d}.part{color:#8a5a00}.fails{color:#a01818}\
figure{margin:1rem 0}figure svg{max-width:100%;height:auto}dl{display:grid;\
grid-template-columns:max-content 1fr;gap:.2rem 1rem}dd{margin:0;overflow-wrap:anywhere}";

/// Writes the report. `picture` gives the SVG of a name.
pub(super) fn report<E>(
    heading: &Heading<'_>,
    sections: &[Section],
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
    page.push_str("<h2>Claims</h2>\n");
    claims(&mut page, sections);
    for section in sections {
        let _ = writeln!(page, "<h2>{}</h2>", escaped(&section.title));
        let _ = writeln!(page, "<p>{}</p>", escaped(&section.method));
        for name in &section.pictures {
            let svg = picture(name)?;
            let _ = writeln!(page, "<figure>\n{}\n</figure>", inline(&svg));
        }
        for rows in &section.grids {
            grid(&mut page, rows);
        }
    }
    page.push_str("</body>\n</html>\n");
    Ok(page)
}

fn claims(page: &mut String, sections: &[Section]) {
    page.push_str("<div class=\"scroll\"><table>\n<tr><th>where</th><th>the paper</th>");
    page.push_str("<th>measured here</th><th>verdict</th></tr>\n");
    for claim in sections.iter().flat_map(|section| &section.claims) {
        let class = match claim.verdict {
            Verdict::Holds => "holds",
            Verdict::InPart(_) => "part",
            Verdict::Fails(_) => "fails",
        };
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"{class}\">{}</td></tr>",
            escaped(claim.place),
            escaped(claim.paper),
            escaped(&claim.measured),
            escaped(&claim.verdict.text())
        );
    }
    page.push_str("</table></div>\n");
}

fn grid(page: &mut String, grid: &Grid) {
    let _ = writeln!(page, "<h3>{}</h3>", escaped(&grid.title));
    page.push_str("<div class=\"scroll\"><table>\n");
    let mut row = |cells: &[String], tag: &str| {
        page.push_str("<tr>");
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
    row(&grid.columns, "th");
    for cells in &grid.rows {
        row(cells, "td");
    }
    page.push_str("</table></div>\n");
}

/// A picture's text from its element on.
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
    use super::super::claims::Claim;
    use super::*;

    #[test]
    fn text_from_outside_stays_text() {
        let section = Section {
            title: "a < b".to_owned(),
            method: "x & y".to_owned(),
            claims: vec![Claim {
                place: "Fig. 1",
                paper: "<b>faster</b>",
                measured: "\"2\"".to_owned(),
                verdict: Verdict::InPart("not <c>".to_owned()),
            }],
            grids: vec![Grid {
                title: "g".to_owned(),
                columns: vec!["name".to_owned(), "n".to_owned()],
                words: 1,
                rows: vec![vec!["<i>".to_owned(), "1".to_owned()]],
            }],
            pictures: vec!["p.svg".to_owned()],
        };
        let heading = Heading {
            title: "T & U",
            facts: &[("command", "classyard 'a<b'".to_owned())],
            remarks: &[],
        };
        let picture = |name: &str| -> Result<String, ()> {
            assert_eq!(name, "p.svg");
            Ok("<?xml version=\"1.0\"?>\n<svg width=\"1\"></svg>\n".to_owned())
        };
        let page = report(&heading, &[section], picture).unwrap();
        for part in [
            "<h1>T &amp; U</h1>",
            "classyard 'a&lt;b'",
            "a &lt; b",
            "x &amp; y",
            "&lt;b&gt;faster&lt;/b&gt;",
            "<td class=\"part\">holds in part: not &lt;c&gt;</td>",
            "<td>&lt;i&gt;</td><td class=\"n\">1</td>",
            "<figure>\n<svg width=\"1\"></svg>\n</figure>",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("<?xml"));
    }
}
