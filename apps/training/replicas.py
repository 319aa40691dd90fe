"""Gradients of one batch from several single-threaded copies of a model; the update is the caller's."""

import concurrent.futures
import copy
import queue


class Replicas:
    """Forward and backward pass of a batch in pieces, each thread on its own single-threaded copy that shares
    the weights.

    Threads meet once a step instead of at every operation: on a machine with other work this is several times
    faster.
    """

    def __init__(self, model, count, pieces, loss_of):
        """loss_of(outputs, targets) is the mean loss of a piece; targets is a tensor with a row per image."""
        self.model, self.pieces, self.loss_of = model, pieces, loss_of
        self.pool = concurrent.futures.ThreadPoolExecutor(count)
        self.idle = queue.SimpleQueue()
        self.copies = [copy.deepcopy(model) for _ in range(count)]
        for replica in self.copies:
            for own, shared in zip(replica.parameters(), model.parameters()):
                own.data = shared.data
            self.idle.put(replica)

    def piece(self, inputs, targets, share):
        replica = self.idle.get()
        try:
            loss = self.loss_of(replica(inputs), targets) * share
            loss.backward()
        finally:
            self.idle.put(replica)
        return loss.item()

    def gradients(self, inputs, targets):
        """Leaves the gradient of the mean loss in the model and returns that loss."""
        for replica in self.copies:
            replica.zero_grad()
        pieces = zip(inputs.chunk(self.pieces), targets.chunk(self.pieces))
        jobs = [self.pool.submit(self.piece, x, y, len(y) / len(targets)) for x, y in pieces]
        loss = sum(job.result() for job in jobs)
        for p, *parts in zip(self.model.parameters(), *(replica.parameters() for replica in self.copies)):
            if p.requires_grad:
                p.grad = sum(part.grad for part in parts if part.grad is not None)
        return loss
