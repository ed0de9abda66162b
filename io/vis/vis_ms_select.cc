/* Chooses rows and channels of a MeasurementSet by expressions, which casacore's own
 * MSSelection evaluates, so that they mean what they mean in CASA. */
#include <casacore/ms/MSSel/MSSelection.h>
#include <casacore/ms/MeasurementSets/MeasurementSet.h>
#include <casacore/tables/TaQL/ExprNode.h>

#include <algorithm>

#include "vis_ms.h"

namespace tess_ms
{
namespace
{

using casacore::MeasurementSet;
using casacore::MSSelection;
using casacore::TableExprNode;

/* An expression, its option, and how MSSelection takes it. */
struct Expression {
    const char *tess_vis_expressions::*text;
    const char *option;
    casacore::Bool (MSSelection::*set)(const String &);
};

const Expression expressions[] = {
    {&tess_vis_expressions::field, "--select-field", &MSSelection::setFieldExpr},
    {&tess_vis_expressions::spw, "--select-spw", &MSSelection::setSpwExpr},
    {&tess_vis_expressions::scan, "--scan", &MSSelection::setScanExpr},
    {&tess_vis_expressions::time, "--timerange", &MSSelection::setTimeExpr},
    {&tess_vis_expressions::uvrange, "--select-uvrange", &MSSelection::setUvDistExpr},
    {&tess_vis_expressions::antenna, "--antenna", &MSSelection::setAntennaExpr},
    {&tess_vis_expressions::intent, "--select-intent", &MSSelection::setStateExpr},
    {&tess_vis_expressions::taql, "--select-taql", &MSSelection::setTaQLExpr},
};

/* casacore's words in one line. */
std::string one_line(const std::string &words)
{
    std::string line;
    for (const char c : words.substr(0, 300)) {
        const bool is_blank = static_cast<unsigned char>(c) <= ' ';
        if (!is_blank || (!line.empty() && line.back() != ' '))
            line += is_blank ? ' ' : c;
    }
    while (!line.empty() && line.back() == ' ')
        line.pop_back();
    return line;
}

/* Ranges of channels that an expression names, in order and without overlaps. A window
 * that it names without channels has all. */
void take_channels(const casacore::Matrix<Int> &list, Chosen &chosen)
{
    for (size_t k = 0; k < list.nrow(); ++k) {
        const int64_t first = list(k, 1), last = list(k, 2), step = list(k, 3);
        auto &ranges = chosen.channels[list(k, 0)];
        if (step <= 1) ranges.push_back({first, last + 1});
        for (int64_t c = first; step > 1 && c <= last; c += step)
            ranges.push_back({c, c + 1});
    }
    for (auto &item : chosen.channels) {
        std::vector<Chosen::Channels> &ranges = item.second, merged;
        std::sort(ranges.begin(), ranges.end());
        for (const Chosen::Channels &range : ranges)
            if (!merged.empty() && range.first <= merged.back().second)
                merged.back().second = std::max(merged.back().second, range.second);
            else
                merged.push_back(range);
        ranges = merged;
    }
}

/* Evaluates one expression; its condition joins the others. */
void add_expression(const Reader &reader, MeasurementSet &set,
                    const Expression &expression, const char *text,
                    TableExprNode &condition, Chosen &chosen)
{
    try {
        MSSelection selection;
        (selection.*expression.set)(text);
        const TableExprNode own = selection.toTableExprNode(&set);
        if (!own.isNull()) condition = condition.isNull() ? own : condition && own;
        if (expression.set == &MSSelection::setSpwExpr && std::strchr(text, ':'))
            take_channels(selection.getChanList(&set), chosen);
    } catch (const casacore::AipsError &error) {
        MS_FAIL(TESS_ERR_USAGE,
                "%s: %s '%.200s' is no selection of this set (casacore says: %s)",
                reader.path.c_str(), expression.option, text,
                one_line(error.what()).c_str());
    }
    chosen.text += (chosen.text.empty() ? "" : ", ") + std::string(expression.option) +
                   " '" + text + "'";
}

/* Marks the rows for which the condition holds. */
void mark_rows(const Reader &reader, const MeasurementSet &set,
               const TableExprNode &condition, Chosen &chosen)
{
    try {
        const Table selected = set(condition);
        chosen.rows.assign(static_cast<size_t>(set.nrow()), false);
        for (const rownr_t row : selected.rowNumbers(set))
            chosen.rows[static_cast<size_t>(row)] = true;
    } catch (const casacore::AipsError &error) {
        MS_FAIL(TESS_ERR_USAGE, "%s: %s cannot be evaluated (casacore says: %s)",
                reader.path.c_str(), chosen.text.c_str(),
                one_line(error.what()).c_str());
    }
}

} // namespace

Chosen choose_by(const Reader &reader, const tess_vis_select &select)
{
    Chosen chosen;
    TableExprNode condition;
    if (!tess_vis_expresses(&select.by)) return chosen;
    MeasurementSet set(reader.name, TableLock(TableLock::NoLocking), Table::Old);
    for (const Expression &expression : expressions)
        if (const char *text = select.by.*expression.text)
            add_expression(reader, set, expression, text, condition, chosen);
    if (!condition.isNull()) mark_rows(reader, set, condition, chosen);
    if (select.all_channels) chosen.channels.clear();
    return chosen;
}

} // namespace tess_ms
