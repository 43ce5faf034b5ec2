#include "calc/learn/bank_serving.h"

enum err_code bank_queue_static(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    enum { ANSWERS = 6 };
    const double n = ANSWERS;
    double sum = 0, longest = 0, shortest = 1e9; /* not a unit */
    const char *lengths = "";
    (void)e;
    for (int i = 0; i < ANSWERS; i++) {
        const int64_t len = bank_draw(m, 20, 700);
        sum += (double)len;
        longest = (double)len > longest ? (double)len : longest;
        shortest = (double)len < shortest ? (double)len : shortest;
        lengths = bank_printf(m, "%s%s%lld", lengths, i == 0 ? "" : i + 1 == ANSWERS ? " and " : ", ", (long long)len);
    }
    const double gain = n * longest / sum;
    bank_ask(q, UNITS_RATIO, gain, 0.01, "a ratio");
    q->text = bank_printf(m,
                          "A batch has 6 places, and a decode step takes equally long however many are taken. Answers "
                          "come in sixes of %s tokens, over and over. A static batch runs until its longest answer is "
                          "done, and nobody enters before. With batches made up anew in every step, a place that is "
                          "free is taken at once. How many times more tokens a second does that yield?",
                          lengths);
    bank_slip(q, 1 / gain, "This is the part of a static batch's places that work: its inverse is the gain.");
    bank_slip(q, longest / shortest, "This compares the longest with the shortest: all answers count.");
    bank_slip(q, n, "This is as if a static batch did one answer at a time.");
    bank_slip(q, sum / longest, "These are the tokens of a step of a static batch, on average.");
    bank_slip(q, sum / n / shortest, "This runs a static batch until its shortest answer is done.");
    bank_step(q, bank_printf(m, "static: %.0f tokens in %.0f steps, the longest answer", sum, longest));
    bank_step(q, "by iteration: all 6 places yield a token in every step");
    bank_step(q, bank_printf(m, "6 * %.0f / %.0f = %.4g, the longest over the mean", longest, sum, gain));
    return ERR_OK;
}

/* Requests a second, their first token and each further one, tokens of an answer. */
struct flow {
    double rate, ttft, tpot, tokens;
};

static struct flow draw_flow(struct exercise_maker *m)
{
    return (struct flow){.rate = (double)bank_draw(m, 7, 480) / 10,    /* not a unit */
                         .ttft = (double)bank_draw(m, 90, 2900) / 1e3, /* not a unit */
                         .tpot = (double)bank_draw(m, 8, 70) / 1e3,    /* not a unit */
                         .tokens = (double)bank_draw(m, 60, 900)};
}

static const char *flow_text(struct exercise_maker *m, const struct flow *f)
{
    return bank_printf(m,
                       "the first token comes after %.0f ms and each further one after %.0f ms, on average; an answer "
                       "has %.0f tokens",
                       f->ttft * 1e3, f->tpot * 1e3, f->tokens); /* not a unit */
}

enum err_code bank_queue_little(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    const struct flow f = draw_flow(m);
    const double latency = f.ttft + (f.tokens - 1) * f.tpot, inside = f.rate * latency;
    (void)e;
    bank_ask(q, UNITS_COUNT, inside, 0.01, "a number of requests (need not be whole)");
    q->things = "request,req,sequence";
    q->text = bank_printf(m,
                          "A service answers %g requests a second, as many as come; %s. How many requests are in it at "
                          "a time, waiting or worked on, on average?",
                          f.rate, flow_text(m, &f));
    bank_slip(q, f.rate * (f.tokens - 1) * f.tpot, "These are those that decode: others still wait for a first token.");
    bank_slip(q, f.rate * f.ttft, "These are those without a first token: others decode.");
    bank_slip(q, latency, "This is the time of one in seconds: so many come in each of them.");
    bank_slip(q, f.rate * f.tokens * (f.ttft + f.tpot), "This waits for a first token with every token.");
    bank_slip(q, f.rate / latency, "Little's law multiplies: who stays longer is met more often.");
    bank_slip(q, f.rate * (f.ttft + f.tpot), "This is an answer of two tokens.");
    bank_step(q, "Little: requests in a system = rate * time in it, whatever the distributions");
    bank_step(q, bank_printf(m, "time: TTFT + (O - 1)*TPOT = %g s + %.0f * %g s = %.4g s", f.ttft, f.tokens - 1, f.tpot,
                             latency));
    bank_step(q, bank_printf(m, "%g * %.4g = %.4g requests; %.4g of them decode, the mean batch", f.rate, latency,
                             inside, f.rate * (f.tokens - 1) * f.tpot));
    return ERR_OK;
}

enum err_code bank_queue_cache(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t TOKEN[] = {24, 36, 128, 160, 320};
    const struct flow f = draw_flow(m);
    const double token = (double)(bank_pick(m, 5, TOKEN) * 1024); /* not a unit */
    const double prompt = (double)bank_draw(m, 200, 6000);
    const double decoding = f.rate * (f.tokens - 1) * f.tpot, context = prompt + f.tokens / 2;
    const double held = decoding * context * token;
    (void)e;
    bank_ask(q, UNITS_BYTES, held, 0.01, "bytes with their unit");
    q->text = bank_printf(m,
                          "A service answers %g requests a second. A prompt has %.0f tokens, an answer %.0f; a "
                          "sequence that decodes gets a token every %.0f ms, and its cache has all tokens before it, "
                          "of %s bytes each. How many bytes of cache do the sequences that decode hold, on average? "
                          "(Each step has one more token behind it: take the mean over an answer's steps.)",
                          f.rate, prompt, f.tokens, f.tpot * 1e3, bank_digits(m, token)); /* not a unit */
    bank_slip(q, decoding * (prompt + f.tokens) * token,
              "This is their length at the end: on average half an answer is there.");
    bank_slip(q, decoding * prompt * token, "This leaves out what has been answered so far.");
    bank_slip(q, decoding * f.tokens / 2 * token, "This leaves out the prompts.");
    bank_slip(q, f.rate * context * token, "These are those that come in a second, not those that are there.");
    bank_slip(q, context * token, "This is one sequence.");
    bank_slip(q, f.rate * f.tpot * context * token, "This is as if an answer took one step.");
    bank_step(q, bank_printf(m, "decoding: rate*(O - 1)*TPOT = %g * %.0f * %g s = %.4g sequences", f.rate, f.tokens - 1,
                             f.tpot, decoding));
    bank_step(q, bank_printf(m, "context: P + O/2 = %g tokens, the mean of P + 1 .. P + O - 1", context));
    bank_step(q, bank_printf(m, "%.4g * %g * %s = %s", decoding, context, bank_digits(m, token),
                             bank_shown(m, UNITS_BYTES, held)));
    return ERR_OK;
}

enum err_code bank_queue_closed(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    const struct flow f = draw_flow(m);
    const double clients = (double)bank_draw(m, 3, 250), think = (double)bank_draw(m, 11, 400) / 10; /* not a unit */
    const double latency = f.ttft + (f.tokens - 1) * f.tpot, rate = clients / (latency + think);
    (void)e;
    bank_ask(q, UNITS_COUNT_PER_S, rate, 0.01, "a number of requests a second");
    q->things = "request,req";
    q->text = bank_printf(m,
                          "A load generator is a closed loop of %.0f clients. Each sends a request, waits for all of "
                          "its answer, thinks for %g s, and asks again; %s. How many requests a second does the server "
                          "see?",
                          clients, think, flow_text(m, &f));
    bank_slip(q, clients / latency, "This leaves out the time to think.");
    bank_slip(q, clients / think, "This leaves out the time that an answer takes.");
    bank_slip(q, 1 / (latency + think), "This is one client.");
    bank_slip(q, clients / (f.ttft + think),
              "This asks again at the first token: a client waits for the whole answer.");
    bank_slip(q, clients * (latency + think), "Clients over the time of a cycle: who takes longer asks less often.");
    bank_slip(q, clients, "These are the clients: each asks once a cycle, not once a second.");
    bank_step(q, bank_printf(m, "an answer: TTFT + (O - 1)*TPOT = %.4g s; a cycle: %.4g s", latency, latency + think));
    bank_step(q, bank_printf(m, "%.0f / %.4g s = %.4g requests a second", clients, latency + think, rate));
    bank_step(q, "a slower server is asked less often, so a closed loop cannot overload it: a rate of its own can");
    return ERR_OK;
}

enum err_code bank_queue_pace(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    double rate, prompt, room, plain, mixed, k;
    (void)e;
    do {
        rate = (double)bank_draw(m, 5, 90) / 10; /* not a unit */
        prompt = (double)bank_draw(m, 300, 5000);
        room = (double)(64 * bank_draw(m, 4, 30));
        plain = (double)bank_draw(m, 7, 30) / 1e3;         /* not a unit */
        mixed = plain + (double)bank_draw(m, 9, 80) / 1e3; /* not a unit */
        k = rate * prompt / room;
    } while (k * mixed > 0.85 || k * mixed < 0.15);
    const double tpot = 1 / (k + (1 - k * mixed) / plain);
    bank_ask(q, UNITS_SECONDS, tpot, 0.01, "a time with its unit");
    q->text = bank_printf(
        m,
        "An engine with chunked prefill serves %g requests a second with prompts of %.0f tokens. A step that only "
        "decodes takes %.0f ms; one that computes a piece of %.0f prompt tokens beside takes %.0f ms. Pieces are full "
        "and "
        "in as many steps as the prompts need; there is always somebody who decodes, and gets a token in every step. "
        "What is the time per token, on average over the steps?",
        rate, prompt, plain * 1e3, room, mixed * 1e3); /* not a unit */
    bank_slip(q, plain, "This leaves out the steps with prompts.");
    bank_slip(q, mixed, "This has prompts in every step.");
    bank_slip(q, k * mixed * mixed + (1 - k * mixed) * plain,
              "This weighs steps by their time, not by their number: long ones are fewer in the same time.");
    bank_slip(q, plain * (1 + k * (mixed - plain)),
              "This adds what comes in a plain step: the longer ones bring more prompts.");
    bank_slip(q, plain / (1 - k * mixed),
              "This gives no token in steps with prompts: those that decode get theirs, too.");
    bank_step(q, bank_printf(m, "steps with prompts: R*P/piece = %g * %.0f / %.0f = %.4g a second, %.3g %% of the time",
                             rate, prompt, room, k, 100 * k * mixed));
    bank_step(q, bank_printf(m, "plain ones fill the rest: (1 - %.4g * %g s) / %g s = %.4g a second", k, mixed, plain,
                             (1 - k * mixed) / plain));
    bank_step(
        q, bank_printf(m, "a token in each of %.4g steps a second: %s", 1 / tpot, bank_shown(m, UNITS_SECONDS, tpot)));
    bank_step(q, "the same: d / (1 - k*(x - d)), which grows without end as prompts take all of the time");
    return ERR_OK;
}

enum err_code bank_queue_wait(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    const int64_t percent = bank_draw(m, 22, 96);
    const double rho = (double)percent / 100, service = (double)bank_draw(m, 30, 900) / 1e3; /* not a unit */
    const double wait = rho * service / (2 * (1 - rho));
    (void)e;
    bank_ask(q, UNITS_SECONDS, wait, 0.01, "a time with its unit");
    q->text =
        bank_printf(m,
                    "Prompts come at random (Poisson) and are prefilled one by one, in order; each takes %.0f ms. "
                    "The GPU prefills for %lld %% of the time. How long does a prompt wait on average before its "
                    "own prefill begins?",
                    service * 1e3, (long long)percent); /* not a unit */
    bank_slip(q, 2 * wait, "This is for times that vary as exponential ones do: equal ones wait half as long.");
    bank_slip(q, wait + service, "This is until the prompt is through: its own time is not waiting.");
    bank_slip(q, rho * service / 2, "This is the rest of the one in progress: others wait in front, too.");
    bank_slip(q, service / (1 - rho), "This is wait and service for exponential times.");
    bank_slip(q, service / (2 * (1 - rho)), "This finds the GPU always busy: it is for a part of the time.");
    bank_step(q, "Pollaczek-Khinchine: W = rate*E[s^2] / (2*(1 - rho)), and E[s^2] = s^2 for equal times");
    bank_step(q, bank_printf(m, "rate*s = rho = %g, so W = rho*s / (2*(1 - rho)) = %g * %g s / %g", rho, rho, service,
                             2 * (1 - rho)));
    bank_step(
        q, bank_printf(m, "= %s, %.3g times the prefill itself", bank_shown(m, UNITS_SECONDS, wait), wait / service));
    return ERR_OK;
}
