// Judges templates by cdk-nag's rule packs: node nag.cjs OUTPUT TEMPLATE ...
// It leaves a report for each pack and template in OUTPUT. NODE_PATH says where the packages are.
const path = require("path");
const { App, Aspects, Stack } = require("aws-cdk-lib");
const { CfnInclude } = require("aws-cdk-lib/cloudformation-include");
const { NagReportFormat, NIST80053R5Checks, PCIDSS321Checks } = require("cdk-nag");

const [output, ...templates] = process.argv.slice(2);
const app = new App({ outdir: output });
for (const templateFile of templates) {
  const stack = new Stack(app, path.basename(templateFile, ".json"));
  new CfnInclude(stack, "Template", { templateFile });
}
for (const Pack of [NIST80053R5Checks, PCIDSS321Checks]) {
  Aspects.of(app).add(new Pack({ reports: true, reportFormats: [NagReportFormat.JSON] }));
}
app.synth();
