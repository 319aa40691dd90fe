"""Gradients of one batch from several single-threaded copies of a model; the update is the caller's."""

import concurrent.futures
import copy
import queue

import torch


class Replicas:
    """Forward and backward pass of a batch in pieces, each thread on its own single-threaded copy that shares
    the weights.

    Threads meet once a step instead of at every operation: on a machine with other work this is several times
    faster.
    """

    def __init__(self, model, count, pieces, loss_of, dtype=torch.float32):
        """loss_of(outputs, targets) is the mean loss of a piece; targets is a tensor with a row per image. The
        copies compute in dtype; if it is not the model's, they take over the weights at every call."""
        self.model, self.pieces, self.loss_of = model, pieces, loss_of
        self.pool = concurrent.futures.ThreadPoolExecutor(count)
        self.idle = queue.SimpleQueue()
        self.copies = [copy.deepcopy(model).to(dtype) for _ in range(count)]
        for replica in self.copies:
            for own, shared in zip(replica.parameters(), model.parameters()):
                own.data = shared.data.to(dtype)
            self.idle.put(replica)

    def piece(self, make, share):
        inputs, targets = make()
        replica = self.idle.get()
        try:
            loss = self.loss_of(replica(inputs).float(), targets) * share
            loss.backward()
        finally:
            self.idle.put(replica)
        return loss.item()

    def gradients(self, inputs, targets):
        """Leaves the gradient of the mean loss in the model and returns that loss."""
        pieces = zip(inputs.chunk(self.pieces), targets.chunk(self.pieces))
        return self.gradients_of([(lambda x=x, y=y: (x, y), len(y) / len(targets)) for x, y in pieces])

    @torch.no_grad()
    def gradients_of(self, pieces):
        """The same for pieces that their thread makes: pairs of a function that returns inputs and targets, and
        their share of all images."""
        for replica in self.copies:
            replica.zero_grad()
            for own, shared in zip(replica.parameters(), self.model.parameters()):
                if own.data_ptr() != shared.data_ptr():
                    own.copy_(shared)
        jobs = [self.pool.submit(self.piece, make, share) for make, share in pieces]
        loss = sum(job.result() for job in jobs)
        for p, *parts in zip(self.model.parameters(), *(replica.parameters() for replica in self.copies)):
            if p.requires_grad:
                p.grad = sum(part.grad.float() for part in parts if part.grad is not None)
        return loss
