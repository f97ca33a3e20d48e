//! The report: one HTML file with its pictures inside.

use std::fmt::Write as _;

use super::claims::{Grid, Section, Verdict};

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
figure{margin:.5rem 0}figure svg{max-width:100%;height:auto}dl{display:grid;\
grid-template-columns:max-content 1fr;gap:.1rem 1rem;font-size:.9rem}dt{color:#666}\
dd{margin:0;overflow-wrap:anywhere}";

/// Tables with more rows are collapsed until the reader opens them.
const LONG_GRID_ROWS: usize = 16;

/// Writes the report. `picture` returns the SVG with a given name.
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

/// Returns the numbers of claims by verdict, as HTML.
fn summary(sections: &[Section]) -> String {
    let verdicts = || {
        let claims = sections.iter().flat_map(|section| &section.claims);
        claims.map(|claim| class(&claim.verdict))
    };
    let count = |wanted: &str| verdicts().filter(|class| *class == wanted).count();
    let open = match count("open") {
        0 => String::new(),
        open => format!(" <b class=\"open\">{open} not measured</b>"),
    };
    format!(
        "Of {} claims, <b class=\"holds\">{} hold</b> <b class=\"part\">{} hold in part</b> \
         <b class=\"fails\">{} do not hold here</b>{open}. A claim is the paper's, in our words; \
         what was measured is on the machine above, with our implementations.",
        verdicts().count(),
        count("holds"),
        count("part"),
        count("fails")
    )
}

fn class(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::InPart(_) => "part",
        Verdict::Fails(_) => "fails",
        Verdict::NotMeasured(_) => "open",
    }
}

fn claims(page: &mut String, sections: &[Section]) {
    page.push_str("<div class=\"scroll\"><table>\n<tr><th>where</th><th>the paper</th>");
    page.push_str("<th>measured here</th><th>verdict</th></tr>\n");
    for (number, section) in sections.iter().enumerate() {
        for claim in &section.claims {
            let why = match &claim.verdict {
                Verdict::Holds => String::new(),
                Verdict::InPart(why) | Verdict::Fails(why) | Verdict::NotMeasured(why) => {
                    format!("<span class=\"why\">{}</span>", escaped(why))
                }
            };
            let _ = writeln!(
                page,
                "<tr><td class=\"place\"><a href=\"#section{number}\">{}</a></td><td>{}</td>\
                 <td>{}</td><td><b class=\"{}\">{}</b>{why}</td></tr>",
                escaped(claim.place),
                escaped(claim.paper),
                escaped(&claim.measured),
                class(&claim.verdict),
                claim.verdict.word()
            );
        }
    }
    page.push_str("</table></div>\n");
}

fn grid(page: &mut String, grid: &Grid) {
    let title = escaped(&grid.title);
    let long = grid.rows.len() > LONG_GRID_ROWS;
    let _ = match long {
        true => writeln!(
            page,
            "<details><summary>{title} ({} rows)</summary>",
            grid.rows.len()
        ),
        false => writeln!(page, "<h3>{title}</h3>"),
    };
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
            "1 hold in part",
            "<b class=\"part\">holds in part</b><span class=\"why\">not &lt;c&gt;</span>",
            "<h2 id=\"section0\">a &lt; b</h2>",
            "<td>&lt;i&gt;</td><td class=\"n\">1</td>",
            "<figure>\n<svg width=\"1\"></svg>\n</figure>",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("<?xml"));
    }
}
