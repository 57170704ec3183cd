//! The section of the report about hosts.

use std::fmt::Write;

use crate::results::page::chart::escaped;
use crate::urls::hosts::Hosts;
use crate::work::numbers::count;

/// Adds the numbers of duplicates within and across hosts, the hosts with the most near pages, and mirrored hosts.
pub(crate) fn hosts(page: &mut String, found: &Hosts) {
    let share = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
    let _ = writeln!(
        page,
        "<h2 id=\"hosts\">Where duplicates come from</h2>\n<p>{} pages with a URL, of {} hosts and {} registrable \
         domains. {} pages ({:.1} %) are represented by another page of their cluster:</p>",
        count(found.pages),
        count(found.hosts),
        count(found.domains),
        count(found.duplicates),
        share(found.duplicates, found.pages)
    );
    let rows = [
        ("of the same host", found.duplicates_within_hosts),
        ("of another host of the same domain", found.duplicates_within_domains),
        ("of another domain", found.duplicates_across_domains),
    ];
    let rows = rows.map(|(what, number)| {
        format!(
            "<tr><td>{what}</td><td>{}</td><td>{:.1} %</td></tr>",
            count(number),
            share(number, found.duplicates)
        )
    });
    table(
        page,
        "Duplicates within and across hosts",
        &["the page that represents it is", "pages", "share"],
        &rows,
    );
    let rows: Vec<String> = found
        .aliases
        .iter()
        .filter(|(_, number)| *number > 0)
        .map(|(alias, number)| format!("<tr><td>{alias}</td><td>{}</td></tr>", count(*number)))
        .collect();
    table(page, "Near pages that were found in both spellings of an alias", &["alias", "pages"], &rows);
    let rows: Vec<String> = found
        .most_near
        .iter()
        .map(|host| {
            let numbers = [host.pages, host.near, host.near_inside, host.near_outside];
            let numbers = numbers.map(|number| format!("<td>{}</td>", count(number))).concat();
            let rate = share(host.near, host.pages);
            format!("<tr><td class=\"left\">{}</td>{numbers}<td>{rate:.1} %</td></tr>", escaped(&host.host))
        })
        .collect();
    let columns = ["host", "pages", "near another", "of this host", "of another host", "rate"];
    table(page, "The hosts with most near pages", &columns, &rows);
    let rows: Vec<String> = found.most_mirrored.iter().map(|one| {
        let (of_host, of_other) = one.shares();
        format!(
            "<tr><td class=\"left\">{}</td><td class=\"left\">{}</td><td>{} of {}</td><td>{:.1} %</td><td>{} of {}</td><td>{:.1} %</td></tr>",
            escaped(&one.host),
            escaped(&one.other),
            count(one.near),
            count(one.pages),
            100.0 * of_host,
            count(one.near_of_other),
            count(one.pages_of_other),
            100.0 * of_other
        )
    }).collect();
    let columns = ["host", "other", "near one of the other", "share", "of the other", "share"];
    table(page, "Hosts that mirror each other most, by the smaller share", &columns, &rows);
}

fn table(page: &mut String, caption: &str, columns: &[&str], rows: &[String]) {
    if rows.is_empty() {
        return;
    }
    let _ = write!(
        page,
        "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\"><table><caption>{caption}</caption>\n<tr>"
    );
    for column in columns {
        let _ = write!(page, "<th scope=\"col\">{column}</th>");
    }
    let _ = writeln!(page, "</tr>\n{}\n</table></div>", rows.join("\n"));
}
