//! Writes `datapackage.json`, which describes the package's files and the crawl.

use std::io::{self, Write as _};

use crawl_archive::{DigestAlgorithm, Timestamp};
use crawl_records::CrawlSettings;
use serde::Serialize;
use serde_json::json;

use crate::earlier_wacz::WaczDependency;
use crate::options::WaczOptions;
use crate::page_list::MainPage;
use crate::zip_file_writer::{DataPackageResource, ZipFileWriter};

/// The version of the WACZ format of our packages.
const WACZ_VERSION: &str = "1.1.1";
const NAME: &str = "datapackage.json";

/// The content of `datapackage.json`: fields of WACZ 1.1.1 and of the Data Package format, and our
/// own fields `rounds` and `relation`.
#[derive(Serialize)]
struct DataPackage<'a> {
    profile: &'static str,
    wacz_version: &'static str,
    title: String,
    description: String,
    created: String,
    modified: String,
    software: &'a str,
    #[serde(rename = "mainPageUrl", skip_serializing_if = "Option::is_none")]
    main_page_url: Option<&'a str>,
    /// The same value as `mainPageUrl`, under the name that other programs use.
    #[serde(rename = "mainPageURL", skip_serializing_if = "Option::is_none")]
    main_page_url_of_others: Option<&'a str>,
    #[serde(rename = "mainPageDate", skip_serializing_if = "Option::is_none")]
    main_page_date: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    homepage: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    contributors: Vec<Contributor<'a>>,
    /// The numbers of the crawl's rounds that the package contains.
    rounds: &'a [u32],
    #[serde(skip_serializing_if = "Option::is_none")]
    relation: Option<Relation<'a>>,
    resources: &'a [DataPackageResource],
}

#[derive(Serialize)]
struct Contributor<'a> {
    title: &'a str,
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    organization: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<&'a str>,
}

#[derive(Serialize)]
struct Relation<'a> {
    requires: Vec<&'a WaczDependency>,
}

/// The facts that `datapackage.json` states about the package, apart from the list of its files.
pub(crate) struct DataPackageMetadata<'a> {
    pub(crate) options: &'a WaczOptions,
    pub(crate) settings: &'a CrawlSettings,
    pub(crate) rounds: &'a [u32],
    pub(crate) main: Option<&'a MainPage>,
    pub(crate) required: Vec<&'a WaczDependency>,
}

/// Writes `datapackage.json`, and `datapackage-digest.json` with its digest.
pub(crate) fn write(facts: DataPackageMetadata<'_>, zip: &mut ZipFileWriter) -> io::Result<()> {
    let created = seconds(facts.options.created);
    let operator = &facts.settings.operator;
    let main = facts.main;
    let package = DataPackage {
        profile: "data-package",
        wacz_version: WACZ_VERSION,
        title: title(&facts),
        description: description(&facts),
        modified: created.clone(),
        created,
        software: &facts.options.software,
        main_page_url: main.map(|page| page.url.as_str()),
        main_page_url_of_others: main.map(|page| page.url.as_str()),
        main_page_date: main.map(|page| page.date.as_str()),
        homepage: operator.study_page.as_deref(),
        contributors: contributors(facts.settings),
        rounds: facts.rounds,
        relation: (!facts.required.is_empty()).then_some(Relation {
            requires: facts.required,
        }),
        resources: zip.resources(),
    };
    let text = serde_json::to_vec_pretty(&package)?;
    let digest = json!({ "path": NAME, "hash": DigestAlgorithm::Sha256.of(&[&text]) });
    zip.begin_deflated(NAME)?;
    zip.write_all(&text)?;
    zip.begin_deflated("datapackage-digest.json")?;
    writeln!(zip, "{digest:#}")
}

fn title(facts: &DataPackageMetadata<'_>) -> String {
    let seeds = &facts.settings.seeds;
    let of = match seeds.as_slice() {
        [] => "Crawl".to_owned(),
        [seed] => format!("Crawl of {seed}"),
        [seed, others @ ..] => format!("Crawl of {seed} and {} more", others.len()),
    };
    match facts.options.round {
        Some(round) => format!("{of}, round {round}"),
        None => of,
    }
}

fn description(facts: &DataPackageMetadata<'_>) -> String {
    let study = facts.settings.operator.study.as_deref();
    let started = facts.settings.started.as_deref();
    let started = started.map(|started| format!("Crawl started {started}."));
    let parts = study.map(str::to_owned).into_iter().chain(started);
    parts.collect::<Vec<_>>().join("\n\n")
}

fn contributors(settings: &CrawlSettings) -> Vec<Contributor<'_>> {
    let operator = &settings.operator;
    let contact = operator.contact.as_deref();
    let names = [&operator.name, &operator.institution, &operator.contact];
    let title = names.into_iter().find_map(Option::as_deref);
    let one = title.map(|title| Contributor {
        title,
        role: "contributor",
        organization: operator.institution.as_deref(),
        email: contact.filter(|contact| contact.contains('@') && !contact.contains('/')),
    });
    one.into_iter().collect()
}

/// Formats a time as RFC 3339 without fractions of a second, because validators reject fractions.
fn seconds(time: Timestamp) -> String {
    let text = time.rfc3339_millis();
    format!("{}Z", text.split('.').next().unwrap_or_default())
}
